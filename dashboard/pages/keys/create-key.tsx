import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Row, useChange, useRead } from "../../api/queries.ts";
import { Checkbox } from "../../components/checkbox.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { FormSection, MoreOptions } from "../../components/form-section.tsx";
import { APIS, IDENTITIES, PERMISSIONS, ROLES } from "../../components/picker-sources.ts";
import { TextField } from "../../components/text-field.tsx";
import { useChoices, useMissing } from "../../components/use-options.ts";
import { createBody, EMPTY_DRAFT, type KeyDraft, problemsOf } from "./key-draft.ts";
import { ExpiryField, LimitsAndCredits, MetaField, NameAndOwner, ownerOf, RightsFields } from "./key-fields.tsx";
import { outcomeOf } from "./key-outcome.ts";
import { NewKey } from "./new-key.tsx";

/** Creates a key and shows its secret once. */
export function CreateKey({
  apiId: given,
  externalId = "",
  onClose,
}: {
  /** API of the key; `undefined` lets the person choose. */
  apiId: string | undefined;
  /** Initial owner of the key; the person can choose another one. */
  externalId?: string | undefined;
  onClose: () => void;
}): ReactNode {
  const [chosen, setChosen] = useState<string>();
  const apiId = given ?? chosen;
  const [draft, setDraft] = useState<KeyDraft>({ ...EMPTY_DRAFT, externalId });
  const api = useChosenApi(apiId);
  const create = useChange("keys.createKey", {
    refreshes: ["admin.searchKeys", "admin.listApis", "identities.listIdentities", "admin.listPermissions"],
  });
  const change = (changed: Partial<KeyDraft>): void => setDraft((before) => ({ ...before, ...changed }));
  const missing = {
    roles: useMissing(ROLES, draft.roles),
    permissions: useMissing(PERMISSIONS, draft.permissions),
    owners: useMissing(IDENTITIES, ownerOf(draft)),
  };
  const problems = problemsOf(draft, missing.roles);
  const [fault] = Object.values(problems);
  if (create.data !== undefined) return <NewKey secret={create.data.key} onClose={onClose} />;
  return (
    <FormDialog
      title="Create a key"
      action="Create"
      fault={apiId === undefined ? "Choose an API." : fault}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the key"
      onSubmit={() => apiId !== undefined && create.mutate(createBody(apiId, draft))}
      onClose={onClose}
      outcome={outcomeOf(draft, {
        api: api ?? (apiId === undefined ? undefined : { name: apiId }),
        newPermissions: missing.permissions,
        isNewOwner: missing.owners.length > 0,
      })}
      isWide
    >
      <FormSection title="Who">
        {given === undefined && <ApiChoice apiId={chosen} onChoose={setChosen} />}
        <NameAndOwner draft={draft} onChange={change} />
      </FormSection>
      <FormSection title="What it may do">
        <RightsFields rights={draft} missing={missing} faults={problems} onChange={change} />
      </FormSection>
      <LimitsAndCredits draft={draft} onChange={change} />
      <FormSection title="Life">
        <ExpiryField draft={draft} onChange={change} />
      </FormSection>
      <MoreOptions>
        <FormSection title="Format">
          <TextField
            label="Prefix"
            name="prefix"
            value={draft.prefix}
            onChange={(prefix) => change({ prefix })}
            lengthMax={16}
            placeholder={api?.defaultPrefix}
            hint="Prefix of the key. Default: the prefix of the API."
          />
          <TextField
            label="Random bytes"
            name="byteLength"
            value={draft.byteLength}
            onChange={(byteLength) => change({ byteLength })}
            fault={problems.byteLength}
            inputMode="numeric"
            hint="Default: the setting of the API, or 16."
          />
          <Checkbox
            label="Recoverable"
            isChecked={draft.recoverable}
            onChange={(recoverable) => change({ recoverable })}
            hint="Stores an encrypted copy of the key, if the API allows it. Callers that may decrypt keys can read it later."
          />
        </FormSection>
        <FormSection title="State and data">
          <Checkbox
            label="Enabled"
            isChecked={draft.enabled}
            onChange={(enabled) => change({ enabled })}
            hint="You can enable a disabled key later."
          />
          <MetaField draft={draft} onChange={change} />
        </FormSection>
      </MoreOptions>
    </FormDialog>
  );
}

/**
 * Maximum number of APIs to read when looking for one by its id. More than one may match, because names of other APIs may contain the id.
 */
const FOUND_MAX = 100;

function useChosenApi(apiId: string | undefined): Row<"admin.listApis"> | undefined {
  const search = apiId ?? "";
  const { data } = useRead("admin.listApis", { search, limit: FOUND_MAX }, { enabled: apiId !== undefined });
  return data?.find((one) => one.apiId === apiId);
}

/** Lets the person choose an API. If the workspace has only one API, it is chosen immediately. */
function ApiChoice({
  apiId,
  onChoose,
}: {
  apiId: string | undefined;
  onChoose: (apiId: string | undefined) => void;
}): ReactNode {
  const { only, ...choices } = useChoices(APIS, apiId === undefined ? undefined : { value: apiId, label: apiId });
  const latest = useRef(onChoose);
  latest.current = onChoose;
  useEffect(() => {
    if (only !== undefined) latest.current(only.value);
  }, [only]);
  return (
    <div className="form-wide">
      <Combobox
        label="API"
        name="apiId"
        {...choices}
        value={apiId ?? null}
        onChange={(chosen) => onChoose(chosen ?? undefined)}
        isRequired
        placeholder="Search by name or id"
        hint="The key is valid only for this API."
      />
    </div>
  );
}
