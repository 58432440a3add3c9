import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { Notice } from "../../components/notice.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { DescriptionField, SLUG_LENGTH_MAX, TEXT_LENGTH_MAX } from "./name-form.tsx";
import { starText } from "./star-note.tsx";

/** Pattern of the slugs that the API accepts. */
const SLUG = /^[a-zA-Z0-9_:\-.*]+$/;

export function CreateRole({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useChange("permissions.createRole", { refreshes: ["admin.listRoles"] });
  const submit = (): void => {
    const onSuccess = () => done(`Role ${name} created.`);
    create.mutate({ name, ...(description === "" ? {} : { description }) }, { onSuccess });
  };
  return (
    <FormDialog
      title="Create a role"
      action="Create"
      fault={name.trim() === "" ? "Enter a name." : undefined}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the role"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Name" name="name" value={name} onChange={setName} lengthMax={SLUG_LENGTH_MAX} isRequired />
      <DescriptionField value={description} onChange={setDescription} />
      <p className="muted">The role grants no permissions until you select cells in its column and save them.</p>
    </FormDialog>
  );
}

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
