import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { useToast } from "../../parts/toast.tsx";
import type { KeyDetails } from "./details.ts";
import { draftOf, faultsOf, updateBody } from "./key-draft.ts";
import { KeyFields } from "./key-fields.tsx";

/** Sends what was changed and nothing else, so that what another person changes meanwhile stays. */
export function ChangeKey({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  const [before] = useState(() => draftOf(details.key));
  const [draft, setDraft] = useState(before);
  const update = useChange("keys.updateKey", { refreshes: ["admin.getKeyDetails", "admin.searchKeys"] });
  const body = updateBody(details.key.keyId, before, draft);
  const [fault] = Object.values(faultsOf(draft));
  const unusable = fault ?? (Object.keys(body).length === 1 ? "Nothing is changed yet." : undefined);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (unusable !== undefined || update.isPending) return;
    update.mutate(body, {
      onSuccess: () => {
        toast("The key is changed.");
        onClose();
      },
    });
  };
  return (
    <Dialog
      title="Change the key"
      isOpen
      isWide
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={update.isPending} unusable={unusable}>
          Save
        </Button>
      }
    >
      <form id={form} className="form" onSubmit={submit}>
        <KeyFields draft={draft} onChange={(change) => setDraft((last) => ({ ...last, ...change }))} />
      </form>
      {update.error !== null && <ErrorNote error={update.error} doing="Changing the key" />}
    </Dialog>
  );
}
