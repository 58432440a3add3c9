import { type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Notice } from "../../parts/notice.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useToast } from "../../parts/toast.tsx";
import { starText } from "./star-note.tsx";

/** As the API takes them. */
const SLUG = /^[a-zA-Z0-9_:\-.*]+$/;
const LENGTH_MAX = 128;
const DESCRIPTION_LENGTH_MAX = 512;

export function CreateRole({ onClose }: { onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useChange("permissions.createRole", { refreshes: ["admin.listRoles"] });
  const fault = name.trim() === "" ? "Enter a name." : undefined;
  return (
    <Dialog
      title="Create a role"
      isOpen
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={create.isPending} unusable={fault}>
          Create
        </Button>
      }
    >
      <form
        id={form}
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (fault !== undefined || create.isPending) return;
          const done = () => {
            toast(`The role ${name} is created.`);
            onClose();
          };
          create.mutate({ name, ...(description === "" ? {} : { description }) }, { onSuccess: done });
        }}
      >
        <TextField label="Name" value={name} onChange={setName} lengthMax={LENGTH_MAX} isRequired />
        <TextField
          label="Description"
          value={description}
          onChange={setDescription}
          lengthMax={DESCRIPTION_LENGTH_MAX}
          rows={2}
        />
      </form>
      <p className="muted">It grants nothing until cells of its column are marked and saved.</p>
      {create.error !== null && <ErrorNote error={create.error} doing="Creating the role" />}
    </Dialog>
  );
}

export function CreatePermission({ onClose }: { onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  const [slug, setSlug] = useState("");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useChange("permissions.createPermission", { refreshes: ["admin.listPermissions"] });
  const isSlug = SLUG.test(slug);
  const stars = isSlug ? starText(slug) : undefined;
  return (
    <Dialog
      title="Create a permission"
      isOpen
      onClose={onClose}
      actions={
        <Button
          kind="main"
          type="submit"
          form={form}
          isBusy={create.isPending}
          unusable={isSlug ? undefined : "Enter a slug."}
        >
          Create
        </Button>
      }
    >
      <form
        id={form}
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isSlug || create.isPending) return;
          const body = { slug, name: name === "" ? slug : name, ...(description === "" ? {} : { description }) };
          const done = () => {
            toast(`The permission ${slug} is created.`);
            onClose();
          };
          create.mutate(body, { onSuccess: done });
        }}
      >
        <TextField
          label="Slug"
          value={slug}
          onChange={setSlug}
          lengthMax={LENGTH_MAX}
          isMono
          isRequired
          hint="What requests ask for, such as documents.read. It cannot be changed later."
          fault={
            slug === "" || isSlug ? undefined : "Only letters without accents, digits, and _ : - . * are possible."
          }
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
      </form>
      {stars !== undefined && <Notice kind="warn">{stars}</Notice>}
      {create.error !== null && <ErrorNote error={create.error} doing="Creating the permission" />}
    </Dialog>
  );
}
