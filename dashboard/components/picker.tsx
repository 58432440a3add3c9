import { Combobox as Base } from "@base-ui/react/combobox";
import { X } from "lucide-react";
import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";
import { type ComboboxOption, isMatch, OptionList } from "./combobox.tsx";
import { useFieldFault, useFormChanged } from "./form-faults.ts";
import type { PickerSource } from "./picker-sources.ts";
import { useOptions } from "./use-options.ts";
import "./field.css";
import "./picker.css";

/**
 * Maximum number of values that one paste adds. It is more than any form accepts, so the form itself can report a list that is too long.
 */
const PASTED_MAX = 1001;

/**
 * Field for names of objects, each shown as a chip. Typing searches the server. Enter, Tab and leaving the field add the typed name. If
 * only existing objects are possible, Enter and Tab choose the highlighted match instead. A pasted list, separated by commas or lines, adds
 * all of its names. Backspace and the left arrow key lead to the chips.
 */
export function Picker({
  label,
  name,
  source,
  values,
  onChange,
  missing,
  isSingle = false,
  placeholder,
  hint,
  fault: ownFault,
  isRequired = false,
  isDisabled = false,
}: {
  label: string;
  /** As of `TextField`. */
  name: string;
  source: PickerSource;
  values: readonly string[];
  onChange: (values: readonly string[]) => void;
  /** Values for which no object exists. */
  missing: readonly string[];
  /** Whether a new value replaces the previous one. */
  isSingle?: boolean;
  placeholder?: string;
  hint?: ReactNode;
  fault?: string | undefined;
  isRequired?: boolean;
  isDisabled?: boolean;
}): ReactNode {
  const id = useId();
  const field = useRef<HTMLDivElement>(null);
  const highlighted = useRef<ComboboxOption>(undefined);
  const refused = useFieldFault(name);
  const onFormChanged = useFormChanged();
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [isUsed, setUsed] = useState(false);
  const found = useOptions(source, text, { enabled: isUsed });
  const options = offered(source, found, text, values);
  const fault = ownFault ?? refused;

  const set = (next: readonly string[]): void => {
    onChange(next);
    onFormChanged(name);
  };
  const add = (added: readonly string[]): void => {
    setText("");
    highlighted.current = undefined;
    const next = isSingle ? added.slice(-1) : withoutRepeats([...values, ...added], source);
    if (next.join("\n") !== values.join("\n")) set(next);
  };
  /** Adds the typed name, in the spelling of the existing object if there is one. */
  const addTyped = (): void => {
    const typed = text.trim();
    if (typed === "") return;
    const [known] = found.options.filter(({ value }) => keyOf(source, value) === keyOf(source, typed));
    add([known?.value ?? typed]);
  };
  const onPaste = (event: ClipboardEvent<HTMLInputElement>): void => {
    const pasted = partsOf(event.clipboardData.getData("text"));
    if (pasted.length < 2) return;
    event.preventDefault();
    const typed = text.trim();
    add(typed === "" ? pasted : [typed, ...pasted]);
    setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement> & { preventBaseUIHandler: () => void }): void => {
    const isHighlighted = isOpen && highlighted.current !== undefined;
    if (event.key === "Enter") {
      event.preventDefault();
      if (isHighlighted) return;
      // Otherwise Enter would make the library choose the option under the resting pointer, even if nothing is typed.
      if (text.trim() === "" || !isOpen) event.preventBaseUIHandler();
      if (!isOpen) addTyped();
    } else if (event.key === "Escape" && !isOpen) {
      // Otherwise Escape would make the library remove all values.
      event.preventBaseUIHandler();
    } else if (event.key === "," && source.hasNoCommas) {
      event.preventDefault();
      addTyped();
      setOpen(false);
    } else if (event.key === "Tab" && isHighlighted && text.trim() !== "" && !event.shiftKey) {
      add([highlighted.current?.value ?? text]);
    }
  };

  const described = [hint !== undefined && `${id}-hint`, fault !== undefined && `${id}-fault`].filter(Boolean);
  return (
    <div className="field">
      <label id={`${id}-label`} htmlFor={id}>
        {label}
      </label>
      <Base.Root
        multiple
        items={options}
        filter={null}
        value={values.map((value) => ({ value, label: value }))}
        onValueChange={(next: readonly ComboboxOption[], { reason }) => {
          if (reason !== "item-press") return set(next.map(({ value }) => value));
          add(next.slice(values.length).map(({ value }) => value));
          if (isSingle) setOpen(false);
        }}
        isItemEqualToValue={(one, other) => one.value === other.value}
        inputValue={text}
        onInputValueChange={(typed, { reason }) => {
          // The library clears the text when the list closes. That change is ignored, because only the person may discard what they have
          // typed.
          if (reason === "input-change") setText(typed);
        }}
        open={isOpen}
        onOpenChange={(next) => {
          if (next) setUsed(true);
          setOpen(next);
        }}
        autoHighlight
        disabled={isDisabled}
        onItemHighlighted={(option, { reason }) => {
          // Ignores a highlight by the pointer, because the pointer may merely rest on the option.
          highlighted.current = reason === "pointer" ? undefined : option;
        }}
      >
        <Base.Chips ref={field} className="input chips" aria-label={values.length === 0 ? undefined : "Chosen"}>
          {values.map((value) => (
            <Base.Chip key={value} className={chipClass(value, missing, source)}>
              <span className="chip-text">{value}</span>
              {missing.includes(value) && (
                <span className="chip-note">{source.isCreated ? "new" : "does not exist"}</span>
              )}
              {!isDisabled && (
                <Base.ChipRemove className="chip-remove" aria-label={`Remove ${value}`}>
                  <X size={14} aria-hidden />
                </Base.ChipRemove>
              )}
            </Base.Chip>
          ))}
          <Base.Input
            id={id}
            name={name}
            className="chips-input"
            placeholder={values.length === 0 ? placeholder : undefined}
            maxLength={source.lengthMax}
            autoComplete="off"
            spellCheck={false}
            aria-required={isRequired || undefined}
            aria-invalid={fault !== undefined || undefined}
            aria-labelledby={`${id}-label`}
            aria-describedby={described.length === 0 ? undefined : described.join(" ")}
            onFocus={() => setUsed(true)}
            onBlur={({ currentTarget, relatedTarget }) => {
              // The field is still in use while its list or another window has the focus.
              const isInUse = relatedTarget?.closest(".popup") != null || document.activeElement === currentTarget;
              if (!isInUse) addTyped();
            }}
            onPaste={onPaste}
            onKeyDown={onKeyDown}
          />
        </Base.Chips>
        <OptionList empty={emptyText(source, found.isCurrent, found.problem, text)} anchor={field} />
      </Base.Root>
      {hint !== undefined && (
        <span id={`${id}-hint`} className="field-hint">
          {hint}
        </span>
      )}
      {found.problem !== undefined && (
        <span role="status" className="field-fault">
          Searching the {source.many} failed. {found.problem} You can type complete names.
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

/** Returns the names in a list, separated by lines or commas. */
const partsOf = (text: string): string[] =>
  text
    .split(/[\r\n,]+/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .slice(0, PASTED_MAX);

/** Returns the text of a name to compare, in lower case if the server ignores case. */
const keyOf = ({ isCaseSensitive }: PickerSource, value: string): string =>
  isCaseSensitive ? value : value.toLowerCase();

function withoutRepeats(values: readonly string[], source: PickerSource): readonly string[] {
  const firsts = new Map<string, string>();
  for (const value of values) {
    const key = keyOf(source, value);
    if (!firsts.has(key)) firsts.set(key, value);
  }
  return [...firsts.values()];
}

/**
 * Returns the options for the typed text. If the form creates missing objects, the typed name is the first option. So Enter adds the typed
 * name, regardless of what the server finds meanwhile.
 */
function offered(
  source: PickerSource,
  { options, isCurrent }: { readonly options: readonly ComboboxOption[]; readonly isCurrent: boolean },
  text: string,
  values: readonly string[],
): readonly ComboboxOption[] {
  const typed = text.trim();
  const free = options.filter((option) => !values.includes(option.value) && isMatch(option, typed));
  if (typed === "") return free;
  const wanted = keyOf(source, typed);
  const rankOf = ({ value }: ComboboxOption): number => {
    const key = keyOf(source, value);
    return key === wanted ? 0 : key.startsWith(wanted) ? 1 : 2;
  };
  const sorted = free.toSorted((one, other) => rankOf(one) - rankOf(other));
  const isKnown = [...values, ...options.map(({ value }) => value)].some((value) => keyOf(source, value) === wanted);
  if (!source.isCreated || isKnown) return sorted;
  return [{ value: typed, label: isCurrent ? `Create ${source.one} ${typed}` : typed }, ...sorted];
}

function emptyText(source: PickerSource, isCurrent: boolean, problem: string | undefined, text: string): string {
  if (problem !== undefined) return "The search failed.";
  if (!isCurrent) return "Searching …";
  return text.trim() === "" ? `No further ${source.many}.` : `No ${source.one} matches.`;
}

const chipClass = (value: string, missing: readonly string[], { isCreated }: PickerSource): string =>
  missing.includes(value) && !isCreated ? "value-chip value-chip-bad" : "value-chip";
