import { type ReactNode, useEffect, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useToast } from "../../parts/toast.tsx";
import { EMPTY, IdentityFields, readDraft } from "./form.tsx";

/** As the API takes them. */
const EXTERNAL_ID = /^[a-zA-Z0-9_.-]+$/;

export function CreateIdentity({
  isOpen,
  onClose,
  onCreated,
}: {
  isOpen: boolean;
  onClose: () => void;
  onCreated: (identityId: string) => void;
}): ReactNode {
  const form = useId();
  const toast = useToast();
  const [externalId, setExternalId] = useState("");
  const [draft, setDraft] = useState(EMPTY);
  const create = useChange("identities.createIdentity", { refreshes: ["identities.listIdentities"] });
  const { reset } = create;
  useEffect(() => {
    if (!isOpen) return;
    setExternalId("");
    setDraft(EMPTY);
    reset();
  }, [isOpen, reset]);
  const read = readDraft(draft);
  const isNamed = EXTERNAL_ID.test(externalId);
  const fault = "fault" in read ? read.fault : isNamed ? undefined : "Enter the external id.";
  const submit = (): void => {
    if ("fault" in read || !isNamed || create.isPending) return;
    create.mutate(
      { externalId, ...read },
      {
        onSuccess: ({ identityId }) => {
          toast(`The identity ${externalId} is created.`);
          onClose();
          onCreated(identityId);
        },
      },
    );
  };
  return (
    <Dialog
      title="Create an identity"
      isOpen={isOpen}
      onClose={onClose}
      isWide
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
          submit();
        }}
      >
        <TextField
          label="External id"
          value={externalId}
          onChange={setExternalId}
          lengthMax={255}
          isRequired
          hint="Your own id of a user, an organisation or a machine. It cannot be changed later."
          fault={
            externalId === "" || isNamed ? undefined : "Only letters without accents, digits, and _ . - are possible."
          }
        />
        <IdentityFields draft={draft} onChange={setDraft} />
      </form>
      {create.error !== null && <ErrorNote error={create.error} doing="Creating the identity" />}
    </Dialog>
  );
}
