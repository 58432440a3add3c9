import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Button } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { Drawer } from "../../parts/drawer.tsx";
import { Facts } from "../../parts/facts.tsx";
import { ChangeFailed, ManagedNotice } from "../../parts/managed-badge.tsx";
import { missing } from "../../parts/missing.ts";
import { Notice } from "../../parts/notice.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useDone } from "../../parts/toast.tsx";
import { usesText } from "../../parts/uses.ts";
import type { MatrixPermission } from "./matrix.tsx";
import { starText } from "./star-note.tsx";

const REFRESHED = ["admin.listPermissions", "admin.listRoles", "permissions.getRole"] as const;

export function PermissionDetails({
  permission,
  onClose,
}: {
  permission: MatrixPermission;
  onClose: () => void;
}): ReactNode {
  const { id, slug, manager, keyCount, roleCount } = permission;
  const may = useMay();
  const done = useDone(onClose);
  const [name, setName] = useState(permission.name);
  const [description, setDescription] = useState(permission.description ?? "");
  const [isDeleting, setDeleting] = useState(false);
  const update = useChange("permissions.updatePermission", { refreshes: REFRESHED });
  const remove = useChange("permissions.deletePermission", { refreshes: REFRESHED });
  const isChanged = name !== permission.name || description !== (permission.description ?? "");
  const stars = starText(slug);
  const locked = manager === undefined ? undefined : "A manifest manages it: change it there.";
  const fault =
    locked ??
    missing(may, "rbac.*.update_permission") ??
    (name.trim() === "" ? "Enter a name." : isChanged ? undefined : "Nothing is changed.");
  return (
    <Drawer
      title={slug}
      isOpen
      onClose={onClose}
      actions={
        <Button
          kind="danger"
          unusable={locked ?? missing(may, "rbac.*.delete_permission")}
          onClick={() => setDeleting(true)}
        >
          Delete
        </Button>
      }
    >
      {manager !== undefined && <ManagedNotice manager={manager} />}
      {stars !== undefined && <Notice kind="warn">{stars}</Notice>}
      <Facts
        facts={[
          ["Slug", <code key="slug">{slug}</code>],
          ["Id", <code key="id">{id}</code>],
          ["Held directly by", usesText(keyCount, "key")],
          ["Granted by", usesText(roleCount, "role")],
        ]}
      />
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (fault !== undefined || update.isPending) return;
          const onSuccess = () => done(`The permission ${slug} is changed.`);
          const body = { permission: id, name, description: description === "" ? null : description };
          update.mutate(body, { onSuccess });
        }}
      >
        <TextField label="Name" value={name} onChange={setName} lengthMax={512} isRequired />
        <TextField label="Description" value={description} onChange={setDescription} lengthMax={512} rows={2} />
        <p>
          <Button type="submit" isBusy={update.isPending} unusable={fault}>
            Save
          </Button>
        </p>
      </form>
      <ChangeFailed error={update.error} doing="Changing the permission" />
      {isDeleting && (
        <ConfirmDialog
          title={`Delete ${slug}`}
          action="Delete the permission"
          onClose={() => setDeleting(false)}
          typed={slug}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => {
            const onSuccess = () => done(`The permission ${slug} is deleted.`);
            remove.mutate({ permission: id }, { onSuccess });
          }}
        >
          <p>
            {usesText(keyCount, "key")} and {usesText(roleCount, "role")} lose it, within a second. This cannot be
            undone.
          </p>
        </ConfirmDialog>
      )}
    </Drawer>
  );
}
