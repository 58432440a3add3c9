import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Checkbox } from "./checkbox.tsx";
import { useFormChanged } from "./form-faults.ts";
import { type LimitDraft, limitFaults, limitText, RATES, withNew } from "./limit-draft.ts";
import { Presets } from "./presets.tsx";
import { CountField, DurationField } from "./quantity-field.tsx";
import { TextField } from "./text-field.tsx";
import "./form.css";

/** Fields for the limits of a key or an identity: one click adds a limit with common values, which can then be edited. */
export function LimitFields({
  legend,
  limits,
  onChange,
}: {
  legend: string;
  limits: readonly LimitDraft[];
  onChange: (limits: readonly LimitDraft[]) => void;
}): ReactNode {
  const onFormChanged = useFormChanged();
  const change = (row: number, changed: Partial<LimitDraft>): void =>
    onChange(limits.map((limit) => (limit.row === row ? { ...limit, ...changed } : limit)));
  const set = (next: readonly LimitDraft[]): void => {
    onChange(next);
    onFormChanged("ratelimits");
  };
  return (
    <fieldset className="limit-rows form-wide">
      <legend>{legend}</legend>
      {limits.map((limit, at) => {
        const { row, name, limit: count, duration, autoApply } = limit;
        const faults = limitFaults(limit, limits);
        return (
          <div key={row} className="limit-row">
            <TextField
              label="Limit name"
              name={`ratelimits[${at}].name`}
              value={name}
              onChange={(text) => change(row, { name: text })}
              fault={faults.name}
              lengthMax={128}
            />
            <CountField
              label="Requests"
              name={`ratelimits[${at}].limit`}
              value={count}
              onChange={(value) => change(row, { limit: value })}
              fault={faults.limit}
            />
            <DurationField
              label="Window"
              name={`ratelimits[${at}].duration`}
              value={duration}
              onChange={(value) => change(row, { duration: value })}
              fault={faults.duration}
            />
            <div className="limit-foot">
              <Checkbox
                label="Applies to every request"
                isChecked={autoApply}
                onChange={(isChecked) => change(row, { autoApply: isChecked })}
                hint={autoApply ? undefined : "Applies only if a request names the limit."}
              />
              <span className="muted">
                {count !== undefined && duration !== undefined && limitText(count, duration)}
              </span>
              <Button onClick={() => set(limits.filter((one) => one.row !== row))}>
                Remove <span className="unseen">the limit {name}</span>
              </Button>
            </div>
          </div>
        );
      })}
      <div className="field-row">
        <Button onClick={() => set(withNew(limits, { limit: 100, duration: 60_000 }))}>Add a limit</Button>
        <Presets label="Add a usual limit" presets={RATES} onChoose={(chosen) => set(withNew(limits, chosen))} />
      </div>
    </fieldset>
  );
}
