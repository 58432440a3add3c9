import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Notice } from "../../parts/notice.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useDone } from "../../parts/toast.tsx";
import { starText } from "./star-note.tsx";

/** As the API takes them. */
const SLUG = /^[a-zA-Z0-9_:\-.*]+$/;
const LENGTH_MAX = 128;
const DESCRIPTION_LENGTH_MAX = 512;

export function CreateRole({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useChange("permissions.createRole", { refreshes: ["admin.listRoles"] });
  const submit = (): void => {
    const onSuccess = () => done(`The role ${name} is created.`);
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
      <TextField label="Name" value={name} onChange={setName} lengthMax={LENGTH_MAX} isRequired />
      <TextField
        label="Description"
        value={description}
        onChange={setDescription}
        lengthMax={DESCRIPTION_LENGTH_MAX}
        rows={2}
      />
      <p className="muted">It grants nothing until cells of its column are marked and saved.</p>
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
    const onSuccess = () => done(`The permission ${slug} is created.`);
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
        value={slug}
        onChange={setSlug}
        lengthMax={LENGTH_MAX}
        isMono
        isRequired
        hint="What requests ask for, such as documents.read. It cannot be changed later."
        fault={slug === "" || isSlug ? undefined : "Only letters without accents, digits, and _ : - . * are possible."}
      />
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        lengthMax={DESCRIPTION_LENGTH_MAX}
        hint="For people; the slug when empty."
      />
      <TextField
        label="Description"
        value={description}
        onChange={setDescription}
        lengthMax={DESCRIPTION_LENGTH_MAX}
        rows={2}
      />
      {stars !== undefined && <Notice kind="warn">{stars}</Notice>}
    </FormDialog>
  );
}
