import { type ReactNode, useState } from "react";
import { useApi } from "../../api/api-context.ts";
import { useReadAgain } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import type { KeyDetails } from "./details.ts";
import { differenceOf } from "./links.ts";

/** Dialog for the roles and permissions of a key. It adds and removes them one by one, so that concurrent changes by others are kept. */
export function ChangeRights({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const api = useApi();
  const readAgain = useReadAgain();
  const done = useDone(onClose);
  const { keyId } = details.key;
  const [before] = useState(() => ({
    roles: details.roles.map(({ name }) => name),
    permissions: details.permissions.filter(({ isDirect }) => isDirect).map(({ slug }) => slug),
  }));
  const [roles, setRoles] = useState(before.roles.join("\n"));
  const [permissions, setPermissions] = useState(before.permissions.join("\n"));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const ofRoles = differenceOf(before.roles, roles);
  const ofPermissions = differenceOf(before.permissions, permissions);
  const changes = [ofRoles.added, ofRoles.removed, ofPermissions.added, ofPermissions.removed];
  const fault = changes.every((change) => change.length === 0) ? "No changes yet." : undefined;

  const save = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      if (ofRoles.added.length > 0) await api.call("keys.addRoles", { keyId, roles: ofRoles.added });
      if (ofRoles.removed.length > 0) await api.call("keys.removeRoles", { keyId, roles: ofRoles.removed });
      if (ofPermissions.added.length > 0) {
        await api.call("keys.addPermissions", { keyId, permissions: ofPermissions.added });
      }
      if (ofPermissions.removed.length > 0) {
        await api.call("keys.removePermissions", { keyId, permissions: ofPermissions.removed });
      }
      done("Roles and permissions changed.");
    } catch (thrown) {
      // The person can retry: roles and permissions that were already added or removed stay as they are.
      setError(thrown);
    } finally {
      setBusy(false);
      readAgain(["admin.getKeyDetails"]);
    }
  };
  return (
    <FormDialog
      title="Roles and permissions of the key"
      action="Save"
      fault={fault}
      isBusy={isBusy}
      error={error}
      doing="Changing the roles and permissions"
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <TextField
        label="Roles"
        value={roles}
        onChange={setRoles}
        rows={4}
        hint="Names of existing roles, one per line."
      />
      <TextField
        label="Direct permissions"
        value={permissions}
        onChange={setPermissions}
        rows={6}
        isMono
        hint="Slugs, one per line; missing permissions are created. Permissions granted by roles are not listed here."
      />
      <p className="muted">
        Adds {ofRoles.added.length + ofPermissions.added.length}, removes{" "}
        {ofRoles.removed.length + ofPermissions.removed.length}.
      </p>
    </FormDialog>
  );
}
