import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Checkbox } from "../../components/checkbox.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { FormSection, MoreOptions } from "../../components/form-section.tsx";
import { useDone } from "../../components/toast.tsx";
import type { KeyDetails } from "./details.ts";
import { draftOf, problemsOf, updateBody } from "./key-draft.ts";
import { ExpiryField, LimitsAndCredits, MetaField, NameAndOwner } from "./key-fields.tsx";

/** Sends only the changed fields, so that concurrent changes by another person are kept. */
export function ChangeKey({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const [before] = useState(() => draftOf(details.key));
  const [draft, setDraft] = useState(before);
  const update = useChange("keys.updateKey", { refreshes: ["admin.getKeyDetails", "admin.searchKeys"] });
  const body = updateBody(details.key.keyId, before, draft);
  const [fault] = Object.values(problemsOf(draft));
  const fields = { draft, onChange: (change: Partial<typeof draft>) => setDraft((last) => ({ ...last, ...change })) };
  const submit = (): void =>
    update.mutate(body, {
      onSuccess: () => done("Key changed."),
    });
  return (
    <FormDialog
      title="Change the key"
      action="Save"
      fault={fault ?? (Object.keys(body).length === 1 ? "No changes yet." : undefined)}
      isBusy={update.isPending}
      error={update.error}
      doing="Changing the key"
      onSubmit={submit}
      onClose={onClose}
      isWide
    >
      <FormSection title="Who">
        <NameAndOwner {...fields} />
      </FormSection>
      <LimitsAndCredits {...fields} />
      <FormSection title="Life">
        <ExpiryField {...fields} />
        <Checkbox
          label="Enabled"
          isChecked={draft.enabled}
          onChange={(enabled) => fields.onChange({ enabled })}
          hint="Gates and servers reject a disabled key within 30 seconds."
        />
      </FormSection>
      <MoreOptions>
        <FormSection title="Data">
          <MetaField {...fields} />
        </FormSection>
      </MoreOptions>
    </FormDialog>
  );
}
