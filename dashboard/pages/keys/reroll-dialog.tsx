import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { DurationField } from "../../components/quantity-field.tsx";
import type { KeyDetails } from "./details.ts";
import { NewKey } from "./new-key.tsx";

const DAY_MS = 86_400_000;

/** Creates a successor with the same settings and shows its secret once; the old key stays valid during the overlap. */
export function RerollDialog({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const [overlapMs, setOverlapMs] = useState<number | undefined>(DAY_MS);
  const reroll = useChange("keys.rerollKey", {
    refreshes: ["admin.getKeyDetails", "admin.searchKeys", "admin.listApis"],
  });
  if (reroll.data !== undefined) {
    const { keyId, key } = reroll.data;
    return (
      <NewKey secret={key} onClose={onClose}>
        <p>
          It is{" "}
          <Link to="/keys/$keyId" params={{ keyId }} search={{}} onClick={onClose}>
            {keyId}
          </Link>
          . The old key expires after the overlap.
        </p>
      </NewKey>
    );
  }
  const submit = (): void => {
    if (overlapMs !== undefined) reroll.mutate({ keyId: details.key.keyId, expiration: overlapMs });
  };
  return (
    <FormDialog
      title="Reroll the key"
      action="Reroll"
      fault={overlapMs === undefined ? "Enter an overlap, such as 1d or 0s." : undefined}
      isBusy={reroll.isPending}
      error={reroll.error}
      doing="Rerolling the key"
      onSubmit={submit}
      onClose={onClose}
    >
      <p>A new key with the same name, owner, limits, credits, roles and permissions replaces this key.</p>
      <DurationField
        label="Overlap"
        name="expiration"
        value={overlapMs}
        onChange={setOverlapMs}
        hint="Time during which both keys work. With 0s the old key expires immediately."
      />
    </FormDialog>
  );
}
