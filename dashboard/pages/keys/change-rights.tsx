import { type ReactNode, useState } from "react";
import { useApi } from "../../api/api-context.ts";
import { useReadAgain } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { PERMISSIONS, ROLES } from "../../components/picker-sources.ts";
import { useDone } from "../../components/toast.tsx";
import { useMissing } from "../../components/use-options.ts";
import { andText, namesText } from "../../components/uses.ts";
import type { KeyDetails } from "./details.ts";
import { permissionsProblem, rolesProblem } from "./key-draft.ts";
import { RightsFields } from "./key-fields.tsx";
import { differenceOf } from "./links.ts";

/**
 * Dialog for the roles and permissions of a key. Saving adds and removes them one by one, so that concurrent changes by others are kept.
 */
export function ChangeRights({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const api = useApi();
  const readAgain = useReadAgain();
  const done = useDone(onClose);
  const { keyId } = details.key;
  const [before] = useState(() => ({
    roles: details.roles.map(({ name }) => name),
    permissions: details.permissions.filter(({ isDirect }) => isDirect).map(({ slug }) => slug),
  }));
  const [roles, setRoles] = useState<readonly string[]>(before.roles);
  const [permissions, setPermissions] = useState<readonly string[]>(before.permissions);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const ofRoles = differenceOf(before.roles, roles);
  const ofPermissions = differenceOf(before.permissions, permissions);
  const changes = [ofRoles.added, ofRoles.removed, ofPermissions.added, ofPermissions.removed];
  const missing = {
    roles: useMissing(ROLES, ofRoles.added),
    permissions: useMissing(PERMISSIONS, ofPermissions.added),
  };
  const faults = {
    roles: rolesProblem(ofRoles.added, missing.roles),
    permissions: permissionsProblem(ofPermissions.added),
  };
  const isUnchanged = changes.every((change) => change.length === 0);
  const fault = faults.roles ?? faults.permissions ?? (isUnchanged ? "No changes yet." : undefined);

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
      // A retry is safe, because roles and permissions that were already added or removed stay unchanged.
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
      outcome={fault === undefined ? outcomeOf(ofRoles, ofPermissions, missing.permissions) : undefined}
    >
      <RightsFields
        rights={{ roles, permissions }}
        missing={missing}
        faults={faults}
        onChange={(change) => {
          if (change.roles !== undefined) setRoles(change.roles);
          if (change.permissions !== undefined) setPermissions(change.permissions);
        }}
      />
      <p className="muted">Permissions that the roles grant are not listed here.</p>
    </FormDialog>
  );
}

type Difference = ReturnType<typeof differenceOf>;

/** Describes the effect of saving: "Adds the role editor; removes the permission a.read." */
function outcomeOf(roles: Difference, permissions: Difference, created: readonly string[]): string {
  const textOf = (kind: keyof Difference): string =>
    andText([
      ...(roles[kind].length === 0 ? [] : [namesText(roles[kind], "role", "roles")]),
      ...(permissions[kind].length === 0 ? [] : [namesText(permissions[kind], "permission", "permissions")]),
    ]);
  const [added, removed] = [textOf("added"), textOf("removed")];
  const sentences = [
    ...(added === "" ? [] : [`Adds ${added}.`]),
    ...(removed === "" ? [] : [`Removes ${removed}.`]),
    ...(created.length === 0 ? [] : [`Creates ${namesText(created, "permission", "permissions")}.`]),
  ];
  return sentences.join(" ");
}
