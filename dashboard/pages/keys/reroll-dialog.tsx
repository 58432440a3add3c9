import { Link } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { DurationField } from "../../parts/quantity-field.tsx";
import { NewKey } from "./create-key.tsx";
import type { KeyDetails } from "./details.ts";

const DAY_MS = 86_400_000;

/** A successor with the same settings, shown this once; the old key goes on for the overlap. */
export function RerollDialog({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const form = useId();
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
          . The old key ends after the overlap.
        </p>
      </NewKey>
    );
  }
  const unusable = overlapMs === undefined ? "Enter an overlap, such as 1d or 0s." : undefined;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (overlapMs === undefined || reroll.isPending) return;
    reroll.mutate({ keyId: details.key.keyId, expiration: overlapMs });
  };
  return (
    <Dialog
      title="Reroll the key"
      isOpen
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={reroll.isPending} unusable={unusable}>
          Reroll
        </Button>
      }
    >
      <form id={form} className="form" onSubmit={submit}>
        <p>A new key with the same name, owner, limits, credits, roles and permissions takes its place.</p>
        <DurationField
          label="Overlap"
          value={overlapMs}
          onChange={setOverlapMs}
          hint="So long both keys work. 0s: the old one ends at once."
        />
      </form>
      {reroll.error !== null && <ErrorNote error={reroll.error} doing="Rerolling the key" />}
    </Dialog>
  );
}
