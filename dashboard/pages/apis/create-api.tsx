import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useToast } from "../../parts/toast.tsx";
import { API_NAME_HINT, apiNameFault } from "./api-name.ts";

export function CreateApi({ onClose }: { onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  const [name, setName] = useState("");
  const create = useChange("apis.createApi", { refreshes: ["admin.listApis"] });
  const fault = apiNameFault(name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (fault !== undefined || create.isPending) return;
    create.mutate(
      { name: name.trim() },
      {
        onSuccess: () => {
          toast(`The API ${name.trim()} is created.`);
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      title="Create an API"
      isOpen
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={create.isPending} unusable={fault}>
          Create
        </Button>
      }
    >
      <form id={form} className="form" onSubmit={submit}>
        <TextField label="Name" value={name} onChange={setName} hint={API_NAME_HINT} lengthMax={255} isRequired />
      </form>
      {create.error !== null && <ErrorNote error={create.error} doing="Creating the API" />}
    </Dialog>
  );
}
