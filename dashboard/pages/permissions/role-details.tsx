import { type ReactNode, useState } from "react";
import { parseManager } from "../../../core/manifests/manager.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ChangeFailed, lockedThere, ManagedNotice, type RequestedChange } from "../../components/managed-badge.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { usesText } from "../../components/uses.ts";
import { YamlButton } from "../../components/yaml-view.tsx";
import type { MatrixRole } from "./matrix.tsx";
import { isRenamed, NameForm, namingOf, SLUG_LENGTH_MAX } from "./name-form.tsx";
import { LISTED_BY, SHOWN_BY } from "./shown-by.ts";
import { StarNote } from "./star-note.tsx";

export function RoleDetails({ role, onClose }: { role: MatrixRole; onClose: () => void }): ReactNode {
  const { id, manager, keyCount } = role;
  const { data, error, refetch } = useRead("permissions.getRole", { role: id });
  const needs = useRequired();
  const done = useDone(onClose);
  const before = namingOf(role);
  const [naming, setNaming] = useState(before);
  const [isDeleting, setDeleting] = useState(false);
  const update = useChange("permissions.updateRole", { refreshes: SHOWN_BY });
  const remove = useChange("permissions.deleteRole", { refreshes: LISTED_BY });
  const { name, description } = naming;
  const wanted: readonly RequestedChange[] = [
    { path: ["spec"], value: { name, ...(description === "" ? {} : { description }) } },
  ];
  const locked = lockedThere(manager);
  const submit = (): void => {
    const onSuccess = () => done(`Role ${name} changed.`);
    update.mutate({ role: id, name, description: description === "" ? null : description }, { onSuccess });
  };
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
          <Button kind="danger" unusable={locked ?? needs("rbac.*.delete_role")} onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </>
      }
    >
      {error !== null && <ErrorNote error={error} doing="Reading the role" again={() => void refetch()} />}
      {manager !== undefined && (
        <ManagedNotice
          manager={manager}
          wanted={
            isRenamed(before, naming)
              ? wanted
              : [{ path: ["spec", "permissions"], value: permissions.map(({ slug }) => slug) }]
          }
        />
      )}
      <DetailList
        facts={[
          ["Id", <code key="id">{id}</code>],
          ["Used by", usesText(keyCount, "key")],
          ["Grants", usesText(role.permissionCount, "permission")],
        ]}
      />
      <NameForm
        before={before}
        naming={naming}
        onChange={setNaming}
        nameLengthMax={SLUG_LENGTH_MAX}
        nameHint="Keys keep the role under its new name."
        locked={locked ?? needs("rbac.*.update_role")}
        isBusy={update.isPending}
        onSubmit={submit}
      />
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
            const onSuccess = () => done(`Role ${role.name} deleted.`);
            remove.mutate({ role: id }, { onSuccess });
          }}
        >
          <p>{usesText(keyCount, "key")} lose its permissions within a second. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </Drawer>
  );
}
