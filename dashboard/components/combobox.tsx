import { Combobox as Base } from "@base-ui/react/combobox";
import { type ReactNode, type RefObject, useId, useRef } from "react";
import { useFormChanged } from "./form-faults.ts";
import "./field.css";

export interface ComboboxOption {
  readonly value: string;
  readonly label: string;
  /** Text at the right edge of the option, such as an id or a count. */
  readonly note?: string;
  /** Whether the option stands for all values. Typing hides such an option, so that Enter or Tab cannot choose it afterwards. */
  readonly isForAll?: boolean;
}

/** Returns whether the option matches the typed text, by the same rules as the server's search for names and ids. */
export function isMatch({ label, note = "", isForAll = false }: ComboboxOption, typed: string): boolean {
  const text = typed.trim().toLowerCase();
  return text === "" || (!isForAll && [label, note].some((one) => one.toLowerCase().includes(text)));
}

/**
 * Select field with search. Typing highlights the first match, which Enter and Tab choose. Enter never submits the form around the field.
 * With `onSearch`, the server also searches. Until the server's matches arrive, the field offers the matches among the earlier `options`.
 */
export function Combobox({
  label,
  name,
  options,
  value,
  onChange: onChosen,
  onSearch,
  problem,
  placeholder,
  hint,
  isRequired = false,
}: {
  label: string;
  /** As of `TextField`. */
  name?: string;
  options: readonly ComboboxOption[];
  value: string | null;
  onChange: (value: string | null) => void;
  onSearch?: (text: string) => void;
  /** Sentence that says why the server could not search. */
  problem?: string | undefined;
  placeholder?: string;
  hint?: ReactNode;
  isRequired?: boolean;
}): ReactNode {
  const id = useId();
  const onFormChanged = useFormChanged();
  const highlighted = useRef<ComboboxOption>(undefined);
  const chosen = options.find((option) => option.value === value) ?? (value === null ? null : { value, label: value });
  const onChange = (next: string | null): void => {
    onChosen(next);
    if (next !== value) onFormChanged(name);
  };
  return (
    <div className="field">
      <label id={`${id}-label`} htmlFor={id}>
        {label}
      </label>
      <Base.Root
        items={options}
        value={chosen}
        onValueChange={(option) => onChange(option?.value ?? null)}
        isItemEqualToValue={(one, other) => one.value === other.value}
        filter={isMatch}
        autoHighlight
        onItemHighlighted={(option, { reason }) => {
          // Ignores a highlight by the pointer, because the pointer may merely rest on the option.
          highlighted.current = reason === "pointer" ? undefined : option;
        }}
        onInputValueChange={(text, { reason }) => {
          // The text also changes when a value is selected. Searching for the selected text would load other options and change the label
          // again, so only typed text starts a search.
          if (reason === "input-change" || reason === "input-clear") onSearch?.(text);
        }}
      >
        <Base.Input
          id={id}
          name={name}
          className="input"
          required={isRequired}
          placeholder={placeholder}
          onKeyDown={(event) => {
            if (event.key === "Enter") event.preventDefault();
            // With a closed list, Escape would make the library clear the value, which would widen a filter or a scope to everything.
            if (event.key === "Escape" && event.currentTarget.ariaExpanded !== "true") event.preventBaseUIHandler();
            if (event.key === "Tab" && highlighted.current !== undefined) onChange(highlighted.current.value);
          }}
          // An open list hides the rest of the page from screen readers, including the label element. This attribute still names the field.
          aria-labelledby={`${id}-label`}
          aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        />
        <OptionList empty="No matches." />
      </Base.Root>
      {hint !== undefined && (
        <span id={`${id}-hint`} className="field-hint">
          {hint}
        </span>
      )}
      {problem !== undefined && (
        <span role="status" className="field-fault">
          The search failed. {problem} Type to try again.
        </span>
      )}
    </div>
  );
}

/** Popup with the options of a `Combobox` or `Picker`. It opens at the element `anchor`. Default: the input. */
export function OptionList({ empty, anchor }: { empty: string; anchor?: RefObject<HTMLElement | null> }): ReactNode {
  return (
    <Base.Portal>
      <Base.Positioner className="positioner" sideOffset={4} anchor={anchor}>
        <Base.Popup className="popup">
          <Base.Empty className="popup-note">{empty}</Base.Empty>
          <Base.List>
            {(option: ComboboxOption) => (
              <Base.Item key={option.value} value={option} className="popup-item">
                <span>{option.label}</span>
                {option.note !== undefined && <span className="muted">{option.note}</span>}
              </Base.Item>
            )}
          </Base.List>
        </Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  );
}
