import { type ReactNode, useState } from "react";
import type { Procedure } from "../../../core/api/procedures.ts";
import { useApi } from "../../api/api-context.ts";
import { ApiError } from "../../api/api-error.ts";
import type { Row } from "../../api/queries.ts";
import { BatchDialog, type BatchItem } from "../../components/batch-dialog.tsx";
import { Button } from "../../components/button.tsx";
import { lockedBy } from "../../components/managed-badge.tsx";
import { Menu } from "../../components/menu.tsx";
import { Picker } from "../../components/picker.tsx";
import { ROLES } from "../../components/picker-sources.ts";
import { SelectionBar } from "../../components/selection-bar.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { useMissing } from "../../components/use-options.ts";
import type { Selection } from "../../components/use-selection.ts";
import { rolesProblem } from "./key-draft.ts";
import { OwnerPicker } from "./key-fields.tsx";

/** Maximum number of keys in one batch. Such a batch takes a minute or two, during which the page must stay open. */
const KEYS_MAX = 1000;

type FoundKey = Row<"admin.searchKeys">;
type Action = "enable" | "disable" | "delete" | "addRoles" | "removeRoles" | "owner";

const REFRESHES: readonly Procedure[] = ["admin.searchKeys", "admin.getKeyDetails"];

export const keyName = ({ name, start, keyId }: FoundKey): string => name ?? (start === "" ? keyId : `${start}…`);

const itemOf = (key: FoundKey): BatchItem => ({ id: key.keyId, name: keyName(key), skipped: lockedBy(key.manager) });

/** Number of selected keys and the actions for them. Unavailable actions are disabled and show the reason. */
export function KeyBatch({ selection }: { selection: Selection<FoundKey> }): ReactNode {
  const needs = useRequired();
  const [opened, setOpened] = useState<{ readonly action: Action; readonly keys: readonly BatchItem[] }>();
  // Keeps the keys that were selected when the dialog opened, because the list refreshes while the dialog is open.
  const open = (action: Action) => (): void => setOpened({ action, keys: selection.rows.map(itemOf) });
  const update = needs("api.*.update_key");
  const dialog = opened && { keys: opened.keys, onClose: () => setOpened(undefined) };
  return (
    <>
      <SelectionBar selection={selection} one="key" max={KEYS_MAX}>
        <Button unusable={update} onClick={open("enable")}>
          Enable
        </Button>
        <Button unusable={update} onClick={open("disable")}>
          Disable
        </Button>
        <Menu
          label="Assign"
          items={[
            {
              label: "Add roles",
              onChoose: open("addRoles"),
              unusable: needs("api.*.update_key", "rbac.*.add_role_to_key"),
            },
            { label: "Remove roles", onChoose: open("removeRoles"), unusable: update },
            { label: "Set the owner", onChoose: open("owner"), unusable: update },
          ]}
        />
        <Button kind="danger" unusable={needs("api.*.delete_key")} onClick={open("delete")}>
          Delete
        </Button>
      </SelectionBar>
      {dialog && opened.action === "enable" && <EnableKeys {...dialog} enabled />}
      {dialog && opened.action === "disable" && <EnableKeys {...dialog} enabled={false} />}
      {dialog && opened.action === "delete" && <DeleteKeys {...dialog} />}
      {dialog && opened.action === "addRoles" && <ChangeRoles {...dialog} adds />}
      {dialog && opened.action === "removeRoles" && <ChangeRoles {...dialog} adds={false} />}
      {dialog && opened.action === "owner" && <SetOwner {...dialog} />}
    </>
  );
}

interface DialogProps {
  readonly keys: readonly BatchItem[];
  readonly onClose: () => void;
}

function EnableKeys({ keys, onClose, enabled }: DialogProps & { enabled: boolean }): ReactNode {
  const api = useApi();
  return (
    <BatchDialog
      verb={enabled ? "Enable" : "Disable"}
      past={enabled ? "enabled" : "disabled"}
      one="key"
      kind={enabled ? "main" : "danger"}
      items={keys}
      act={({ id }) => api.call("keys.updateKey", { keyId: id, enabled })}
      refreshes={REFRESHES}
      onClose={onClose}
    >
      <p>
        {enabled
          ? "Gates and servers accept the keys again within 30 seconds."
          : "Gates and servers reject the keys within 30 seconds. You can enable them again."}
      </p>
    </BatchDialog>
  );
}

function DeleteKeys({ keys, onClose }: DialogProps): ReactNode {
  const api = useApi();
  const [text, setText] = useState("");
  const count = String(keys.filter(({ skipped }) => skipped === undefined).length);
  return (
    <BatchDialog
      verb="Delete"
      past="deleted"
      one="key"
      items={keys}
      act={async ({ id }) => {
        try {
          await api.call("keys.deleteKey", { keyId: id });
        } catch (error) {
          // The key is already deleted: by someone else, or by an earlier attempt whose response was lost.
          if (!(error instanceof ApiError && error.kind === "key_not_found")) throw error;
        }
      }}
      refreshes={[...REFRESHES, "admin.listApis"]}
      fault={text === count ? undefined : "Type the number of keys to confirm."}
      onClose={onClose}
    >
      <p>
        The keys stop working everywhere within 30 seconds and cannot be restored. To stop them temporarily, disable
        them.
      </p>
      <TextField
        label={
          <>
            Type <code>{count}</code> to confirm
          </>
        }
        value={text}
        onChange={setText}
        inputMode="numeric"
      />
    </BatchDialog>
  );
}

function ChangeRoles({ keys, onClose, adds }: DialogProps & { adds: boolean }): ReactNode {
  const api = useApi();
  const [roles, setRoles] = useState<readonly string[]>([]);
  const missing = useMissing(ROLES, roles);
  const problem = rolesProblem(roles, missing);
  return (
    <BatchDialog
      verb={adds ? "Add roles to" : "Remove roles from"}
      past="changed"
      one="key"
      kind="main"
      items={keys}
      act={({ id }) => api.call(adds ? "keys.addRoles" : "keys.removeRoles", { keyId: id, roles: [...roles] })}
      refreshes={REFRESHES}
      fault={problem ?? (roles.length === 0 ? "Choose a role." : undefined)}
      onClose={onClose}
    >
      <Picker
        label="Roles"
        name="roles"
        source={ROLES}
        values={roles}
        missing={missing}
        onChange={setRoles}
        fault={problem}
        hint={`Names of existing roles. ${adds ? "The keys keep the roles that they have." : "The keys keep their other roles."}`}
      />
    </BatchDialog>
  );
}

function SetOwner({ keys, onClose }: DialogProps): ReactNode {
  const api = useApi();
  const [externalId, setExternalId] = useState("");
  return (
    <BatchDialog
      verb="Set the owner of"
      past="changed"
      one="key"
      kind="main"
      items={keys}
      act={({ id }) => api.call("keys.updateKey", { keyId: id, externalId })}
      refreshes={[...REFRESHES, "admin.getIdentityDetails"]}
      fault={externalId === "" ? "Choose the owner." : undefined}
      onClose={onClose}
    >
      <OwnerPicker
        externalId={externalId}
        onChange={setExternalId}
        hint="Id of the owner in your system. It replaces other owners; a missing identity is created."
      />
    </BatchDialog>
  );
}
