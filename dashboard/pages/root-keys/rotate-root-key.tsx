import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FullTime } from "../../components/ago.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { Select } from "../../components/select.tsx";
import { NewRootKey } from "./new-root-key.tsx";
import { type RootKeyDetails, SHOWN_BY } from "./root-key.ts";

const HOUR_MS = 3_600_000;
const OVERLAPS = [
  { value: "0", label: "none: the old root key expires immediately" },
  { value: String(HOUR_MS), label: "1 hour" },
  { value: String(24 * HOUR_MS), label: "1 day" },
  { value: String(7 * 24 * HOUR_MS), label: "7 days" },
  { value: String(30 * 24 * HOUR_MS), label: "30 days" },
  { value: String(90 * 24 * HOUR_MS), label: "90 days" },
];

/** Creates a successor and shows it once. */
export function RotateRootKey({ rootKey, onClose }: { rootKey: RootKeyDetails; onClose: () => void }): ReactNode {
  const [overlap, setOverlap] = useState(String(24 * HOUR_MS));
  const rotate = useChange("admin.rotateRootKey", { refreshes: SHOWN_BY });
  if (rotate.data !== undefined) {
    return (
      <NewRootKey secret={rotate.data.rootKey} onClose={onClose}>
        <p>
          The old root key expires: <FullTime atMs={rotate.data.predecessorExpiresAt} />. The details of each root key
          show the other.
        </p>
      </NewRootKey>
    );
  }
  return (
    <ConfirmDialog
      title="Rotate the root key"
      onClose={onClose}
      action="Rotate"
      isBusy={rotate.isPending}
      error={rotate.error}
      onConfirm={() => rotate.mutate({ rootKeyId: rootKey.rootKeyId, overlap: Number(overlap) })}
    >
      <p>
        Rotation creates a successor with the same name, environment and permissions. Both root keys work until the end
        of the overlap: replace the old one wherever it is used.
      </p>
      <Select label="Overlap" value={overlap} options={OVERLAPS} onChange={setOverlap} />
    </ConfirmDialog>
  );
}
