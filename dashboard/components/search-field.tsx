import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import "./field.css";

/** So long after the last letter it is asked for. */
const SETTLED_MS = 250;

/** A filter that the server applies. The address has the value, so that going back and sharing a link work. */
export function SearchField({
  label,
  value,
  onChange,
  placeholder,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}): ReactNode {
  const id = useId();
  const [text, setText] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  // The address changed by itself: the way back, a link.
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => latest.current(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <div className="field search-field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        className="input"
        value={text}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        onChange={({ target }) => setText(target.value)}
      />
    </div>
  );
}
