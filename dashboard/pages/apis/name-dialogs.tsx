import { type ReactNode, useState } from "react";
import { type Row, useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";

export function CreateApi({ onClose }: { onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [name, setName] = useState("");
  const create = useChange("apis.createApi", { refreshes: ["admin.listApis"] });
  const submit = (): void =>
    create.mutate(
      { name: name.trim() },
      {
        onSuccess: () => done(`API ${name.trim()} created.`),
      },
    );
  return (
    <FormDialog
      title="Create an API"
      action="Create"
      fault={apiNameProblem(name)}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the API"
      onSubmit={submit}
      onClose={onClose}
    >
      <ApiNameField name={name} onChange={setName} />
    </FormDialog>
  );
}

export function RenameApi({
  api,
  onClose,
}: {
  api: Pick<Row<"admin.listApis">, "apiId" | "name">;
  onClose: () => void;
}): ReactNode {
  const done = useDone(onClose);
  const [name, setName] = useState(api.name);
  const rename = useChange("apis.updateApi", {
    refreshes: ["admin.listApis", "apis.getApi", "admin.resolveNames", "admin.getKeyDetails", "admin.getPolicy"],
  });
  const submit = (): void =>
    rename.mutate(
      { apiId: api.apiId, name: name.trim() },
      {
        onSuccess: () => done("API renamed."),
      },
    );
  return (
    <FormDialog
      title={`Rename the API ${api.name}`}
      action="Rename"
      fault={apiNameProblem(name)}
      isBusy={rename.isPending}
      error={rename.error}
      doing="Renaming the API"
      onSubmit={submit}
      onClose={onClose}
    >
      <ApiNameField name={name} onChange={setName} />
    </FormDialog>
  );
}

function ApiNameField({ name, onChange }: { name: string; onChange: (name: string) => void }): ReactNode {
  return (
    <TextField
      label="Name"
      name="name"
      value={name}
      onChange={onChange}
      hint={API_NAME_HINT}
      lengthMax={255}
      isRequired
    />
  );
}

const API_NAME_HINT = "3 to 255 characters.";

/** Returns the problem with an API name; `undefined` if the name is valid. */
const apiNameProblem = (name: string): string | undefined =>
  name.trim().length < 3 ? `A name has ${API_NAME_HINT}` : undefined;
