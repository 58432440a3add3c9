import { type ReactNode, useId, useState } from "react";
import { parseManager } from "../../../core/manifests/manager.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Button } from "../../parts/button.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { Drawer } from "../../parts/drawer.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Facts } from "../../parts/facts.tsx";
import { ChangeFailed, ManagedNotice, type Wanted } from "../../parts/managed-badge.tsx";
import { missing } from "../../parts/missing.ts";
import { TextField } from "../../parts/text-field.tsx";
import { useDone } from "../../parts/toast.tsx";
import { usesText } from "../../parts/uses.ts";
import { YamlButton } from "../../parts/yaml-view.tsx";
import type { MatrixRole } from "./matrix.tsx";
import { StarNote } from "./star-note.tsx";

const REFRESHED = ["admin.listRoles", "admin.listPermissions", "permissions.getRole"] as const;

export function RoleDetails({ role, onClose }: { role: MatrixRole; onClose: () => void }): ReactNode {
  const { id, manager, keyCount } = role;
  const { data, error, refetch } = useRead("permissions.getRole", { role: id });
  const may = useMay();
  const done = useDone(onClose);
  const form = useId();
  const [name, setName] = useState(role.name);
  const [description, setDescription] = useState(role.description ?? "");
  const [isDeleting, setDeleting] = useState(false);
  const update = useChange("permissions.updateRole", { refreshes: REFRESHED });
  const remove = useChange("permissions.deleteRole", { refreshes: REFRESHED });
  const isChanged = name !== role.name || description !== (role.description ?? "");
  const wanted: readonly Wanted[] = [
    { path: ["spec"], value: { name, ...(description === "" ? {} : { description }) } },
  ];
  const locked = manager === undefined ? undefined : "A manifest manages it: change it there.";
  const fault =
    locked ??
    missing(may, "rbac.*.update_role") ??
    (name.trim() === "" ? "Enter a name." : isChanged ? undefined : "Nothing is changed.");
  const permissions = data?.permissions ?? [];
  return (
    <Drawer
      title={role.name}
      isOpen
      onClose={onClose}
      actions={
        <>
          {data !== undefined && (
            <YamlButton
              object={{
                kind: "Role",
                name: data.name,
                description: data.description,
                permissions: permissions.map(({ slug }) => slug),
                manager: manager === undefined ? undefined : parseManager(manager),
              }}
            />
          )}
          <Button
            kind="danger"
            unusable={locked ?? missing(may, "rbac.*.delete_role")}
            onClick={() => setDeleting(true)}
          >
            Delete
          </Button>
        </>
      }
    >
      {error !== null && <ErrorNote error={error} doing="Reading the role" again={() => void refetch()} />}
      {manager !== undefined && (
        <ManagedNotice
          manager={manager}
          wanted={isChanged ? wanted : [{ path: ["spec", "permissions"], value: permissions.map(({ slug }) => slug) }]}
        />
      )}
      <Facts
        facts={[
          ["Id", <code key="id">{id}</code>],
          ["Used by", usesText(keyCount, "key")],
          ["Grants", usesText(role.permissionCount, "permission")],
        ]}
      />
      <form
        id={form}
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (fault !== undefined || update.isPending) return;
          const onSuccess = () => done(`The role ${name} is changed.`);
          update.mutate({ role: id, name, description: description === "" ? null : description }, { onSuccess });
        }}
      >
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          lengthMax={128}
          isRequired
          hint="Keys that have the role keep it under its new name."
        />
        <TextField label="Description" value={description} onChange={setDescription} lengthMax={512} rows={2} />
        <p>
          <Button type="submit" isBusy={update.isPending} unusable={fault}>
            Save
          </Button>
        </p>
      </form>
      <ChangeFailed error={update.error} doing="Changing the role" wanted={wanted} />
      <section>
        <h3>Permissions</h3>
        {permissions.length === 0 ? (
          <p className="muted">{data === undefined ? "Loading …" : "None."}</p>
        ) : (
          <ul>
            {permissions.map(({ id: permissionId, slug }) => (
              <li key={permissionId}>
                <code>{slug}</code> <StarNote slug={slug} />
              </li>
            ))}
          </ul>
        )}
      </section>
      {isDeleting && (
        <ConfirmDialog
          title={`Delete ${role.name}`}
          action="Delete the role"
          onClose={() => setDeleting(false)}
          typed={role.name}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => {
            const onSuccess = () => done(`The role ${role.name} is deleted.`);
            remove.mutate({ role: id }, { onSuccess });
          }}
        >
          <p>{usesText(keyCount, "key")} lose what it grants, within a second. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </Drawer>
  );
}
