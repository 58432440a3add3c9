import { type ReactNode, useEffect, useId, useRef } from "react";
import { useToast } from "./toast.tsx";
import "./field.css";

/** Checkbox with a label. `isMixed` shows that only some of the items that the checkbox covers are selected. */
export function Checkbox({
  label,
  isChecked,
  onChange,
  hint,
  isMixed = false,
  unusable,
  isLabelUnseen = false,
}: {
  label: ReactNode;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
  hint?: ReactNode;
  isMixed?: boolean;
  /** Reason why the checkbox is disabled. Like a disabled button, it stays in the Tab order and shows the reason when it is pressed. */
  unusable?: string | undefined;
  isLabelUnseen?: boolean;
}): ReactNode {
  const id = useId();
  const toast = useToast();
  const described = [...(unusable === undefined ? [] : [`${id}-why`]), ...(hint === undefined ? [] : [`${id}-hint`])];
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
        aria-disabled={unusable !== undefined || undefined}
        aria-describedby={described.length === 0 ? undefined : described.join(" ")}
        title={unusable}
        onChange={({ target }) => (unusable === undefined ? onChange(target.checked) : toast(unusable))}
      />
      <div>
        <label htmlFor={id} className={isLabelUnseen ? "unseen" : undefined}>
          {label}
        </label>
        {unusable !== undefined && (
          <span id={`${id}-why`} className="unseen">
            {unusable}
          </span>
        )}
        {hint !== undefined && (
          <div id={`${id}-hint`} className="field-hint">
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}
