import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Checkbox } from "../../components/checkbox.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { createBody, EMPTY_DRAFT, type KeyDraft, problemsOf } from "./key-draft.ts";
import { KeyFields } from "./key-fields.tsx";
import { NewKey } from "./new-key.tsx";
import { useApiOptions } from "./use-api-options.ts";

/** Creates a key and shows its secret once. */
export function CreateKey({
  apiId: given,
  onClose,
}: {
  /** API of the key; `undefined` lets the person choose. */
  apiId: string | undefined;
  onClose: () => void;
}): ReactNode {
  const [chosen, setChosen] = useState<string>();
  const apiId = given ?? chosen;
  const [draft, setDraft] = useState<KeyDraft>(EMPTY_DRAFT);
  const create = useChange("keys.createKey", { refreshes: ["admin.searchKeys", "admin.listApis"] });
  const change = (changed: Partial<KeyDraft>): void => setDraft((before) => ({ ...before, ...changed }));
  const [fault] = Object.values(problemsOf(draft));
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
      isWide
    >
      {given === undefined && <ApiChoice apiId={chosen} onChoose={setChosen} />}
      <KeyFields draft={draft} onChange={change} />
      <div className="key-two">
        <TextField
          label="Roles"
          value={draft.roles}
          onChange={(roles) => change({ roles })}
          rows={3}
          hint="Names of existing roles, one per line."
        />
        <TextField
          label="Permissions"
          value={draft.permissions}
          onChange={(permissions) => change({ permissions })}
          rows={3}
          hint="Slugs, one per line; missing permissions are created."
        />
        <TextField
          label="Prefix"
          name="prefix"
          value={draft.prefix}
          onChange={(prefix) => change({ prefix })}
          lengthMax={16}
          hint="Prefix of the key. Default: the prefix of the API."
        />
        <TextField
          label="Random bytes"
          name="byteLength"
          value={draft.byteLength}
          onChange={(byteLength) => change({ byteLength })}
          fault={problemsOf(draft).byteLength}
          inputMode="numeric"
          hint="Default: the setting of the API, or 16."
        />
      </div>
      <Checkbox
        label="Recoverable"
        isChecked={draft.recoverable}
        onChange={(recoverable) => change({ recoverable })}
        hint="Stores an encrypted copy of the key, if the API allows it. Callers that may decrypt keys can read it later."
      />
    </FormDialog>
  );
}

function ApiChoice({
  apiId,
  onChoose,
}: {
  apiId: string | undefined;
  onChoose: (apiId: string | undefined) => void;
}): ReactNode {
  const apis = useApiOptions(apiId, undefined);
  return (
    <Combobox
      label="API"
      {...apis}
      value={apiId ?? null}
      onChange={(chosen) => onChoose(chosen ?? undefined)}
      hint="The key is valid only for this API."
    />
  );
}
