import { type ReactNode, useId } from "react";
import "./field.css";

interface Option<Value extends string> {
  readonly value: Value;
  readonly label: string;
}

/** Native select element: fast, familiar, and usable on all devices. Use `Combobox` for many options. */
export function Select<Value extends string>({
  label,
  isLabelUnseen = false,
  value,
  options,
  onChange,
  hint,
  isDisabled = false,
}: {
  label: string;
  /** Whether only screen readers show the label. Set this if the selected option explains the field. */
  isLabelUnseen?: boolean;
  value: Value;
  options: readonly Option<Value>[];
  onChange: (value: Value) => void;
  hint?: ReactNode;
  isDisabled?: boolean;
}): ReactNode {
  const id = useId();
  return (
    <div className={isLabelUnseen ? "inline-select" : "field"}>
      <label htmlFor={id} className={isLabelUnseen ? "unseen" : undefined}>
        {label}
      </label>
      <select
        id={id}
        className="input"
        value={value}
        disabled={isDisabled}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={({ target }) => {
          const chosen = options.find((option) => option.value === target.value);
          if (chosen !== undefined) onChange(chosen.value);
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      {hint !== undefined && (
        <span id={`${id}-hint`} className="field-hint">
          {hint}
        </span>
      )}
    </div>
  );
}
