import type { ReactNode } from "react";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { Select } from "../../components/select.tsx";
import { TextField } from "../../components/text-field.tsx";
import { zoneName } from "../../components/time.ts";
import { type KeyDraft, type LimitDraft, limitProblem, problemsOf } from "./key-draft.ts";

/** Form fields that the create and change forms share. */
export function KeyFields({
  draft,
  onChange,
}: {
  draft: KeyDraft;
  onChange: (change: Partial<KeyDraft>) => void;
}): ReactNode {
  const faults = problemsOf(draft);
  return (
    <>
      <div className="key-two">
        <TextField
          label="Name"
          name="name"
          value={draft.name}
          onChange={(name) => onChange({ name })}
          lengthMax={255}
          hint="Display name, such as the owner and the purpose."
        />
        <TextField
          label="Owner"
          name="externalId"
          value={draft.externalId}
          onChange={(externalId) => onChange({ externalId })}
          lengthMax={255}
          hint="Id of the owner in your system; a missing identity is created."
        />
        <TextField
          label={`Expires (${zoneName()})`}
          name="expires"
          type="datetime-local"
          value={draft.expires}
          onChange={(expires) => onChange({ expires })}
          fault={faults.expires}
          hint="Leave it empty for a key that never expires."
        />
        <Checkbox
          label="Enabled"
          isChecked={draft.enabled}
          onChange={(enabled) => onChange({ enabled })}
          hint="Gates and servers reject a disabled key within 30 seconds."
        />
      </div>
      <div className="key-two">
        <TextField
          label="Credits"
          name="credits.remaining"
          value={draft.credits}
          onChange={(credits) => onChange({ credits })}
          fault={faults.credits}
          inputMode="numeric"
          hint="Leave it empty for unlimited credits."
        />
        <Select
          label="Refill"
          value={draft.refill}
          options={[
            { value: "none", label: "None" },
            { value: "daily", label: "Daily" },
            { value: "monthly", label: "Monthly" },
          ]}
          onChange={(refill) => onChange({ refill })}
          hint="Credits are added at midnight UTC."
        />
        {draft.refill !== "none" && (
          <TextField
            label="Credits per refill"
            name="credits.refill.amount"
            value={draft.refillAmount}
            onChange={(refillAmount) => onChange({ refillAmount })}
            fault={faults.refillAmount}
            inputMode="numeric"
          />
        )}
        {draft.refill === "monthly" && (
          <TextField
            label="Day of the month"
            name="credits.refill.refillDay"
            value={draft.refillDay}
            onChange={(refillDay) => onChange({ refillDay })}
            fault={faults.refillDay}
            inputMode="numeric"
            hint="In shorter months, the last day."
          />
        )}
      </div>
      <LimitFields limits={draft.limits} onChange={(limits) => onChange({ limits })} />
      <TextField
        label="Meta"
        name="meta"
        value={draft.meta}
        onChange={(meta) => onChange({ meta })}
        fault={faults.meta}
        rows={4}
        isMono
        hint="Your data: a JSON object. Leave it empty for no data."
      />
    </>
  );
}

const NEW_LIMIT: LimitDraft = { name: "requests", limit: "100", duration: "1m", autoApply: true };

function LimitFields({
  limits,
  onChange,
}: {
  limits: readonly LimitDraft[];
  onChange: (limits: readonly LimitDraft[]) => void;
}): ReactNode {
  const change = (at: number, changed: Partial<LimitDraft>): void =>
    onChange(limits.map((limit, index) => (index === at ? { ...limit, ...changed } : limit)));
  return (
    <fieldset className="form">
      <legend>Limits</legend>
      {limits.map((limit, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a limit that is being typed has no other stable key.
        <div key={at} className="key-limit">
          <TextField label="Name" value={limit.name} onChange={(name) => change(at, { name })} lengthMax={128} />
          <TextField
            label="Requests"
            value={limit.limit}
            onChange={(count) => change(at, { limit: count })}
            inputMode="numeric"
          />
          <TextField label="Window" value={limit.duration} onChange={(duration) => change(at, { duration })} />
          <Checkbox
            label="Applies to every request"
            isChecked={limit.autoApply}
            onChange={(autoApply) => change(at, { autoApply })}
          />
          <Button onClick={() => onChange(limits.filter((_, index) => index !== at))}>
            Remove <span className="unseen">the limit {limit.name}</span>
          </Button>
          {limitProblem(limit) !== undefined && <span className="field-fault">{limitProblem(limit)}</span>}
        </div>
      ))}
      <div>
        <Button onClick={() => onChange([...limits, NEW_LIMIT])}>Add a limit</Button>
      </div>
    </fieldset>
  );
}
