import { type HTMLInputTypeAttribute, type ReactNode, useId } from "react";
import { useFieldFault } from "./form-faults.ts";
import "./field.css";

/** Text field of one line, or of several lines with `rows`. */
export function TextField({
  label,
  name,
  value,
  onChange,
  hint,
  fault: ownFault,
  placeholder,
  type = "text",
  rows,
  isRequired = false,
  isMono = false,
  isDisabled = false,
  lengthMax,
  inputMode,
}: {
  label: ReactNode;
  /** Member of the request body that the field sets, such as `credits.remaining`; the field shows the server's problem with it. */
  name?: string;
  value: string;
  onChange: (value: string) => void;
  hint?: ReactNode;
  /** Problem with the value; `undefined` if none is known. */
  fault?: string | undefined;
  placeholder?: string | undefined;
  type?: HTMLInputTypeAttribute;
  rows?: number;
  isRequired?: boolean;
  isMono?: boolean;
  isDisabled?: boolean;
  lengthMax?: number;
  inputMode?: "numeric" | "text";
}): ReactNode {
  const id = useId();
  const refused = useFieldFault(name);
  const fault = ownFault ?? refused;
  const described = [hint !== undefined && `${id}-hint`, fault !== undefined && `${id}-fault`]
    .filter(Boolean)
    .join(" ");
  const shared = {
    id,
    name,
    value,
    placeholder,
    inputMode,
    required: isRequired,
    disabled: isDisabled,
    maxLength: lengthMax,
    autoComplete: "off",
    spellCheck: false,
    className: isMono ? "input mono" : "input",
    "aria-invalid": fault !== undefined || undefined,
    "aria-describedby": described === "" ? undefined : described,
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {rows === undefined ? (
        <input {...shared} type={type} onChange={({ target }) => onChange(target.value)} />
      ) : (
        <textarea {...shared} rows={rows} onChange={({ target }) => onChange(target.value)} />
      )}
      {hint !== undefined && (
        <span id={`${id}-hint`} className="field-hint">
          {hint}
        </span>
      )}
      {fault !== undefined && (
        <span id={`${id}-fault`} className="field-fault">
          {fault}
        </span>
      )}
    </div>
  );
}
