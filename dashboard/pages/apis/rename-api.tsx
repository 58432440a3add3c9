import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import type { Api } from "./api.ts";
import { API_NAME_HINT, apiNameProblem } from "./api-name.ts";

export function RenameApi({ api, onClose }: { api: Pick<Api, "apiId" | "name">; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [name, setName] = useState(api.name);
  const rename = useChange("apis.updateApi", { refreshes: ["admin.listApis", "admin.getKeyDetails"] });
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
      <TextField label="Name" value={name} onChange={setName} hint={API_NAME_HINT} lengthMax={255} isRequired />
    </FormDialog>
  );
}
