import type { ReactNode } from "react";
import { DAY_MS } from "../../core/utc-date.ts";
import { Button } from "./button.tsx";
import { useFormChanged } from "./form-faults.ts";
import "./form.css";

export interface Preset<Value> {
  readonly label: string;
  readonly value: Value;
}

/** Buttons that set a field to usual values. */
export function Presets<Value>({
  label,
  name,
  presets,
  isChosen,
  onChoose,
}: {
  /** Name of the value that the buttons set, for screen readers. */
  label: string;
  /** Name of the field. */
  name?: string;
  presets: readonly Preset<Value>[];
  /** Whether the field has the value; omitted for buttons that add a value. */
  isChosen?: (value: Value) => boolean;
  onChoose: (value: Value) => void;
}): ReactNode {
  const onFormChanged = useFormChanged();
  return (
    <fieldset className="presets">
      <legend className="unseen">{label}</legend>
      {presets.map((preset) => (
        <Button
          key={preset.label}
          aria-pressed={isChosen?.(preset.value)}
          onClick={() => {
            onChoose(preset.value);
            onFormChanged(name);
          }}
        >
          {preset.label}
        </Button>
      ))}
    </fieldset>
  );
}

/** Usual times until a key expires, in ms; `undefined` means never. */
export const EXPIRIES: readonly Preset<number | undefined>[] = [
  { label: "Never", value: undefined },
  { label: "30 days", value: 30 * DAY_MS },
  { label: "90 days", value: 90 * DAY_MS },
  { label: "1 year", value: 365 * DAY_MS },
];
