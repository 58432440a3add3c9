import { type ReactNode, useState } from "react";
import { FormSection } from "../../components/form-section.tsx";
import { LimitFields } from "../../components/limit-fields.tsx";
import { Picker } from "../../components/picker.tsx";
import { IDENTITIES, PERMISSIONS, type PickerSource, ROLES } from "../../components/picker-sources.ts";
import { EXPIRIES, Presets } from "../../components/presets.tsx";
import { Select } from "../../components/select.tsx";
import { TextField } from "../../components/text-field.tsx";
import { localInput, zoneName } from "../../components/time.ts";
import { useMissing } from "../../components/use-options.ts";
import { type KeyDraft, problemsOf } from "./key-draft.ts";

/* Form fields that the create and change forms share. */

interface FieldsProps {
  readonly draft: KeyDraft;
  readonly onChange: (change: Partial<KeyDraft>) => void;
}

export const ownerOf = ({ externalId }: Pick<KeyDraft, "externalId">): readonly string[] =>
  externalId === "" ? [] : [externalId];

export function NameAndOwner({ draft, onChange }: FieldsProps): ReactNode {
  return (
    <>
      <TextField
        label="Name"
        name="name"
        value={draft.name}
        onChange={(name) => onChange({ name })}
        lengthMax={255}
        hint="Display name, such as the purpose of the key."
      />
      <OwnerPicker
        externalId={draft.externalId}
        onChange={(externalId) => onChange({ externalId })}
        hint="Id of the owner in your system; a missing identity is created."
      />
    </>
  );
}

/** Field for the owner of keys; `externalId` is empty if no owner is chosen. */
export function OwnerPicker({
  source = IDENTITIES,
  externalId,
  onChange,
  hint,
}: {
  source?: PickerSource;
  externalId: string;
  onChange: (externalId: string) => void;
  hint: string;
}): ReactNode {
  const owner = ownerOf({ externalId });
  return (
    <Picker
      label="Owner"
      name="externalId"
      source={source}
      isSingle
      values={owner}
      missing={useMissing(source, owner)}
      onChange={([chosen = ""]) => onChange(chosen)}
      hint={hint}
    />
  );
}

interface Rights {
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
}

/** `missing` lists the roles and permissions that do not exist. */
export function RightsFields({
  rights: { roles, permissions },
  missing,
  faults,
  onChange,
}: {
  rights: Rights;
  missing: Rights;
  faults: { readonly roles?: string | undefined; readonly permissions?: string | undefined };
  onChange: (change: Partial<Rights>) => void;
}): ReactNode {
  return (
    <>
      <Picker
        label="Roles"
        name="roles"
        source={ROLES}
        values={roles}
        missing={missing.roles}
        onChange={(chosen) => onChange({ roles: chosen })}
        fault={faults.roles}
        hint="Names of existing roles."
      />
      <Picker
        label="Direct permissions"
        name="permissions"
        source={PERMISSIONS}
        values={permissions}
        missing={missing.permissions}
        onChange={(chosen) => onChange({ permissions: chosen })}
        fault={faults.permissions}
        hint="Slugs, such as documents.read; missing permissions are created."
      />
    </>
  );
}

export function LimitsAndCredits({ draft, onChange }: FieldsProps): ReactNode {
  const faults = problemsOf(draft);
  return (
    <FormSection title="Limits and credits">
      <LimitFields legend="Limits" limits={draft.limits} onChange={(limits) => onChange({ limits })} />
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
    </FormSection>
  );
}

export function ExpiryField({ draft, onChange }: FieldsProps): ReactNode {
  const [openedMs] = useState(() => Date.now());
  const textOf = (afterMs: number | undefined): string => (afterMs === undefined ? "" : localInput(openedMs + afterMs));
  return (
    <div className="form-fields">
      <TextField
        label={`Expires (${zoneName()})`}
        name="expires"
        type="datetime-local"
        value={draft.expires}
        onChange={(expires) => onChange({ expires })}
        fault={problemsOf(draft).expires}
        hint="Leave it empty for a key that never expires."
      />
      <Presets
        label="Expires after"
        name="expires"
        presets={EXPIRIES}
        isChosen={(afterMs) => draft.expires === textOf(afterMs)}
        onChoose={(afterMs) => onChange({ expires: textOf(afterMs) })}
      />
    </div>
  );
}

export function MetaField({ draft, onChange }: FieldsProps): ReactNode {
  return (
    <div className="form-wide">
      <TextField
        label="Meta"
        name="meta"
        value={draft.meta}
        onChange={(meta) => onChange({ meta })}
        fault={problemsOf(draft).meta}
        rows={4}
        isMono
        hint="Your data: a JSON object. Leave it empty for no data."
      />
    </div>
  );
}
