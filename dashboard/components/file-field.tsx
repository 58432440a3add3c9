import { type ReactNode, useId, useState } from "react";
import "./field.css";

/** Field that reads a text file from the person's machine. Files that are too large or are not UTF-8 are rejected with a message. */
export function FileField({
  label,
  accept,
  bytesMax,
  onText,
  hint,
}: {
  label: string;
  /** Value of the `accept` attribute, such as `.csv,text/csv`. */
  accept: string;
  bytesMax: number;
  onText: (text: string, name: string) => void;
  hint?: ReactNode;
}): ReactNode {
  const id = useId();
  const [fault, setParseError] = useState<string>();
  const read = async (file: File): Promise<void> => {
    if (file.size > bytesMax) {
      setParseError(
        `The file has ${file.size.toLocaleString("en")} bytes; the maximum is ${bytesMax.toLocaleString("en")}.`,
      );
      return;
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      setParseError(undefined);
      onText(text, file.name);
    } catch {
      setParseError("The file could not be read as UTF-8 text.");
    }
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept={accept}
        className="input"
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={`${id}-note`}
        onChange={({ target }) => {
          const [file] = target.files ?? [];
          if (file !== undefined) void read(file);
        }}
      />
      <span id={`${id}-note`} className={fault === undefined ? "field-hint" : "field-fault"} role="status">
        {fault ?? hint}
      </span>
    </div>
  );
}
