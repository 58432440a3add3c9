import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { API_NAME_HINT, apiNameProblem } from "./api-name.ts";

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
      <TextField label="Name" value={name} onChange={setName} hint={API_NAME_HINT} lengthMax={255} isRequired />
    </FormDialog>
  );
}
