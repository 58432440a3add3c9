import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useToast } from "../../parts/toast.tsx";
import type { Api } from "./api.ts";
import { API_NAME_HINT, apiNameFault } from "./api-name.ts";

export function RenameApi({ api, onClose }: { api: Pick<Api, "apiId" | "name">; onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  const [name, setName] = useState(api.name);
  const rename = useChange("apis.updateApi", { refreshes: ["admin.listApis", "admin.getKeyDetails"] });
  const fault = apiNameFault(name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (fault !== undefined || rename.isPending) return;
    rename.mutate(
      { apiId: api.apiId, name: name.trim() },
      {
        onSuccess: () => {
          toast("The API is renamed.");
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      title={`Rename the API ${api.name}`}
      isOpen
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={rename.isPending} unusable={fault}>
          Rename
        </Button>
      }
    >
      <form id={form} className="form" onSubmit={submit}>
        <TextField label="Name" value={name} onChange={setName} hint={API_NAME_HINT} lengthMax={255} isRequired />
      </form>
      {rename.error !== null && <ErrorNote error={rename.error} doing="Renaming the API" />}
    </Dialog>
  );
}
