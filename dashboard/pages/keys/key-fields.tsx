import type { ReactNode } from "react";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { Select } from "../../components/select.tsx";
import { TextField } from "../../components/text-field.tsx";
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
          value={draft.name}
          onChange={(name) => onChange({ name })}
          lengthMax={255}
          hint="For people: whose it is, and what for."
        />
        <TextField
          label="Owner"
          value={draft.externalId}
          onChange={(externalId) => onChange({ externalId })}
          lengthMax={255}
          hint="Your own id of the owner; an identity is made for it when there is none."
        />
        <TextField
          label="Expires (UTC)"
          type="datetime-local"
          value={draft.expires}
          onChange={(expires) => onChange({ expires })}
          fault={faults.expires}
          hint="Empty: never."
        />
        <Checkbox
          label="Enabled"
          isChecked={draft.enabled}
          onChange={(enabled) => onChange({ enabled })}
          hint="A disabled key is refused everywhere within half a minute."
        />
      </div>
      <div className="key-two">
        <TextField
          label="Credits"
          value={draft.credits}
          onChange={(credits) => onChange({ credits })}
          fault={faults.credits}
          inputMode="numeric"
          hint="Empty: unlimited."
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
          hint="At midnight UTC."
        />
        {draft.refill !== "none" && (
          <TextField
            label="Credits of a refill"
            value={draft.refillAmount}
            onChange={(refillAmount) => onChange({ refillAmount })}
            fault={faults.refillAmount}
            inputMode="numeric"
          />
        )}
        {draft.refill === "monthly" && (
          <TextField
            label="Day of the month"
            value={draft.refillDay}
            onChange={(refillDay) => onChange({ refillDay })}
            fault={faults.refillDay}
            inputMode="numeric"
            hint="In a shorter month its last day."
          />
        )}
      </div>
      <LimitFields limits={draft.limits} onChange={(limits) => onChange({ limits })} />
      <TextField
        label="Meta"
        value={draft.meta}
        onChange={(meta) => onChange({ meta })}
        fault={faults.meta}
        rows={4}
        isMono
        hint="Your own data: a JSON object. Empty for none."
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
        // biome-ignore lint/suspicious/noArrayIndexKey: a limit that is being typed has nothing else that stays the same.
        <div key={at} className="key-limit">
          <TextField label="Name" value={limit.name} onChange={(name) => change(at, { name })} lengthMax={128} />
          <TextField
            label="Requests"
            value={limit.limit}
            onChange={(count) => change(at, { limit: count })}
            inputMode="numeric"
          />
          <TextField label="In each" value={limit.duration} onChange={(duration) => change(at, { duration })} />
          <Checkbox
            label="For every request"
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
