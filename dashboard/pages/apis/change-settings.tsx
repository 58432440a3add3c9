import { type ReactNode, useState } from "react";
import { type Row, useChange } from "../../api/queries.ts";
import { Checkbox } from "../../components/checkbox.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import {
  BYTES_HINT,
  changesOf,
  draftOf,
  PREFIX_HINT,
  problemsOf,
  type SettingsDraft,
  USUAL_BYTES,
} from "./settings-draft.ts";

/** Form with the settings of an API. Only changed settings are sent, so that concurrent changes by others are kept. */
export function ChangeApiSettings({ api, onClose }: { api: Row<"admin.listApis">; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  // Settings when the form was opened. The page can read newer ones while the form is open.
  const [opened] = useState(api);
  const [draft, setDraft] = useState(() => draftOf(api));
  const set = (change: Partial<SettingsDraft>): void => setDraft((before) => ({ ...before, ...change }));
  const update = useChange("apis.updateApi", { refreshes: ["admin.listApis", "admin.getKeyDetails"] });
  const problems = problemsOf(draft);
  const changes = changesOf(opened, draft);
  return (
    <FormDialog
      title={`Settings of the API ${opened.name}`}
      action="Save"
      doing="Changing the settings"
      fault={faultOf(Object.keys(problems).length, Object.keys(changes).length)}
      isBusy={update.isPending}
      error={update.error}
      onClose={onClose}
      onSubmit={() =>
        update.mutate({ apiId: opened.apiId, ...changes }, { onSuccess: () => done("Settings of the API changed.") })
      }
    >
      <TextField
        label="Default prefix of new keys"
        name="defaultPrefix"
        value={draft.prefix}
        onChange={(prefix) => set({ prefix })}
        fault={problems.prefix}
        hint={PREFIX_HINT}
        lengthMax={20}
        isMono
      />
      <TextField
        label="Default length of new keys"
        name="defaultByteLength"
        value={draft.bytes}
        onChange={(bytes) => set({ bytes })}
        fault={problems.bytes}
        hint={BYTES_HINT}
        placeholder={String(USUAL_BYTES)}
        inputMode="numeric"
        lengthMax={10}
      />
      <TextField
        label="Allowed addresses"
        name="ipAllowList"
        value={draft.addresses}
        onChange={(addresses) => set({ addresses })}
        hint="One address or CIDR block per line, up to 100; empty allows every address. Existing keys stop working from other addresses within 30 seconds. A gate checks the list if its policy has a client address."
        placeholder={"10.0.0.0/8\n2001:db8::1"}
        rows={4}
        lengthMax={10_000}
        isMono
      />
      <Checkbox
        label="Delete protection"
        hint="The API cannot be deleted while this is on."
        isChecked={draft.deleteProtection}
        onChange={(deleteProtection) => set({ deleteProtection })}
      />
      <Checkbox
        label="Recoverable keys"
        hint="New keys can be stored encrypted, so that admins can show them again. The api-servers also need an encryption key."
        isChecked={draft.keyEncryption}
        onChange={(keyEncryption) => set({ keyEncryption })}
      />
    </FormDialog>
  );
}

function faultOf(problems: number, changes: number): string | undefined {
  if (problems > 0) return "Correct the marked fields first.";
  return changes === 0 ? "No changes yet." : undefined;
}
