import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { ChangeFailed, lockedThere, ManagedNotice } from "../../components/managed-badge.tsx";
import { Notice } from "../../components/notice.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { usesText } from "../../components/uses.ts";
import type { MatrixPermission } from "./matrix.tsx";
import { NameForm, namingOf, TEXT_LENGTH_MAX } from "./name-form.tsx";
import { SHOWN_BY } from "./shown-by.ts";
import { starText } from "./star-note.tsx";

export function PermissionDetails({
  permission,
  onClose,
}: {
  permission: MatrixPermission;
  onClose: () => void;
}): ReactNode {
  const { id, slug, manager, keyCount, roleCount } = permission;
  const needs = useRequired();
  const done = useDone(onClose);
  const before = namingOf(permission);
  const [naming, setNaming] = useState(before);
  const [isDeleting, setDeleting] = useState(false);
  const update = useChange("permissions.updatePermission", { refreshes: SHOWN_BY });
  const remove = useChange("permissions.deletePermission", { refreshes: SHOWN_BY });
  const stars = starText(slug);
  const locked = lockedThere(manager);
  const submit = (): void => {
    const { name, description } = naming;
    const onSuccess = () => done(`Permission ${slug} changed.`);
    update.mutate({ permission: id, name, description: description === "" ? null : description }, { onSuccess });
  };
  return (
    <Drawer
      title={slug}
      isOpen
      onClose={onClose}
      actions={
        <Button kind="danger" unusable={locked ?? needs("rbac.*.delete_permission")} onClick={() => setDeleting(true)}>
          Delete
        </Button>
      }
    >
      {manager !== undefined && <ManagedNotice manager={manager} />}
      {stars !== undefined && <Notice kind="warn">{stars}</Notice>}
      <DetailList
        facts={[
          ["Slug", <code key="slug">{slug}</code>],
          ["Id", <code key="id">{id}</code>],
          ["Held directly by", usesText(keyCount, "key")],
          ["Granted by", usesText(roleCount, "role")],
        ]}
      />
      <NameForm
        before={before}
        naming={naming}
        onChange={setNaming}
        nameLengthMax={TEXT_LENGTH_MAX}
        locked={locked ?? needs("rbac.*.update_permission")}
        isBusy={update.isPending}
        onSubmit={submit}
      />
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
            const onSuccess = () => done(`Permission ${slug} deleted.`);
            remove.mutate({ permission: id }, { onSuccess });
          }}
        >
          <p>
            {usesText(keyCount, "key")} and {usesText(roleCount, "role")} lose it within a second. This cannot be
            undone.
          </p>
        </ConfirmDialog>
      )}
    </Drawer>
  );
}
