import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { Notice } from "../../components/notice.tsx";
import { Picker } from "../../components/picker.tsx";
import { PERMISSIONS } from "../../components/picker-sources.ts";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { useMissing } from "../../components/use-options.ts";
import { namesText } from "../../components/uses.ts";
import { DescriptionField, SLUG_LENGTH_MAX, TEXT_LENGTH_MAX } from "./name-form.tsx";
import { starText } from "./star-note.tsx";

/** Pattern of the slugs that the API accepts. */
const SLUG = /^[a-zA-Z0-9_:\-.*]+$/;

/** Maximum number of permissions of one role. */
const PERMISSIONS_MAX = 1000;

export function CreateRole({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const needs = useRequired();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [permissions, setPermissions] = useState<readonly string[]>([]);
  const missing = useMissing(PERMISSIONS, permissions);
  const create = useChange("permissions.createRole", { refreshes: ["admin.listRoles", "admin.listPermissions"] });
  const tooMany =
    permissions.length > PERMISSIONS_MAX ? `At most ${PERMISSIONS_MAX.toLocaleString("en")} permissions.` : undefined;
  const lacking = permissions.length === 0 ? undefined : needs("rbac.*.add_permission_to_role");
  const fault = name.trim() === "" ? "Enter a name." : (tooMany ?? lacking);
  const submit = (): void => {
    const onSuccess = () => done(`Role ${name} created.`);
    create.mutate(
      {
        name,
        ...(description === "" ? {} : { description }),
        ...(permissions.length === 0 ? {} : { permissions: [...permissions] }),
      },
      { onSuccess },
    );
  };
  return (
    <FormDialog
      title="Create a role"
      action="Create"
      fault={fault}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the role"
      onSubmit={submit}
      onClose={onClose}
      outcome={roleOutcome(name.trim(), permissions, missing)}
    >
      <TextField label="Name" name="name" value={name} onChange={setName} lengthMax={SLUG_LENGTH_MAX} isRequired />
      <DescriptionField value={description} onChange={setDescription} />
      <Picker
        label="Permissions"
        name="permissions"
        source={PERMISSIONS}
        values={permissions}
        missing={missing}
        onChange={setPermissions}
        fault={tooMany}
        hint="Slugs, such as documents.read; missing permissions are created. You can change them later."
      />
    </FormDialog>
  );
}

function roleOutcome(name: string, permissions: readonly string[], created: readonly string[]): string {
  const named = name === "" ? "" : ` named “${name}”`;
  const grants = permissions.length === 0 ? "without permissions" : `that grants ${slugsText(permissions)}`;
  return `A role${named} ${grants}.${created.length === 0 ? "" : ` Also creates ${slugsText(created)}.`}`;
}

const slugsText = (slugs: readonly string[]): string => namesText(slugs, "permission", "permissions");

export function CreatePermission({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [slug, setSlug] = useState("");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useChange("permissions.createPermission", { refreshes: ["admin.listPermissions"] });
  const isSlug = SLUG.test(slug);
  const stars = isSlug ? starText(slug) : undefined;
  const submit = (): void => {
    const body = { slug, name: name === "" ? slug : name, ...(description === "" ? {} : { description }) };
    const onSuccess = () => done(`Permission ${slug} created.`);
    create.mutate(body, { onSuccess });
  };
  return (
    <FormDialog
      title="Create a permission"
      action="Create"
      fault={isSlug ? undefined : "Enter a slug."}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the permission"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Slug"
        name="slug"
        value={slug}
        onChange={setSlug}
        lengthMax={SLUG_LENGTH_MAX}
        isMono
        isRequired
        hint="Identifier that requests require, such as documents.read. It cannot be changed later."
        fault={slug === "" || isSlug ? undefined : "Only ASCII letters, digits, and _ : - . * are allowed."}
      />
      <TextField
        label="Name"
        name="name"
        value={name}
        onChange={setName}
        lengthMax={TEXT_LENGTH_MAX}
        hint="Display name. Default: the slug."
      />
      <DescriptionField value={description} onChange={setDescription} />
      {stars !== undefined && <Notice kind="warn">{stars}</Notice>}
    </FormDialog>
  );
}
