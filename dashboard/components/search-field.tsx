import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import "./field.css";

/** Delay after the last keystroke before the request is sent. */
const SETTLED_MS = 250;

/** Search field for a filter that the server applies. The value is stored in the URL, so that browser history and shared links work. */
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
  // Shows the value after the URL has changed outside of the field, through the Back button or a link.
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
