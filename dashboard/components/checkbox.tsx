import { type ReactNode, useEffect, useId, useRef } from "react";
import "./field.css";

/** Checkbox with a label. `isMixed` shows that only some of the items that the checkbox covers are selected. */
export function Checkbox({
  label,
  isChecked,
  onChange,
  hint,
  isMixed = false,
  isDisabled = false,
  isLabelUnseen = false,
}: {
  label: ReactNode;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
  hint?: ReactNode;
  isMixed?: boolean;
  isDisabled?: boolean;
  isLabelUnseen?: boolean;
}): ReactNode {
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = isMixed;
  }, [isMixed]);
  return (
    <div className="checkbox">
      <input
        ref={box}
        id={id}
        type="checkbox"
        checked={isChecked}
        disabled={isDisabled}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={({ target }) => onChange(target.checked)}
      />
      <div>
        <label htmlFor={id} className={isLabelUnseen ? "unseen" : undefined}>
          {label}
        </label>
        {hint !== undefined && (
          <div id={`${id}-hint`} className="field-hint">
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}
