import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { EMPTY, IdentityFields, readDraft } from "./form.tsx";

/** Pattern of the external ids that the API accepts. */
const EXTERNAL_ID = /^[a-zA-Z0-9_.-]+$/;

export function CreateIdentity({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (identityId: string) => void;
}): ReactNode {
  const done = useDone(onClose);
  const [externalId, setExternalId] = useState("");
  const [draft, setDraft] = useState(EMPTY);
  const create = useChange("identities.createIdentity", { refreshes: ["identities.listIdentities"] });
  const read = readDraft(draft);
  const isNamed = EXTERNAL_ID.test(externalId);
  const fault = "fault" in read ? read.fault : isNamed ? undefined : "Enter the external id.";
  const submit = (): void => {
    if ("fault" in read) return;
    create.mutate(
      { externalId, ...read },
      {
        onSuccess: ({ identityId }) => {
          done(`Identity ${externalId} created.`);
          onCreated(identityId);
        },
      },
    );
  };
  return (
    <FormDialog
      title="Create an identity"
      action="Create"
      fault={fault}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the identity"
      onSubmit={submit}
      onClose={onClose}
      isWide
    >
      <TextField
        label="External id"
        name="externalId"
        value={externalId}
        onChange={setExternalId}
        lengthMax={255}
        isRequired
        hint="Id of a user, an organization or a machine in your system. It cannot be changed later."
        fault={externalId === "" || isNamed ? undefined : "Only ASCII letters, digits, and _ . - are allowed."}
      />
      <IdentityFields draft={draft} onChange={setDraft} />
    </FormDialog>
  );
}
