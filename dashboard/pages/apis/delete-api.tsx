import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Row, useChange } from "../../api/queries.ts";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { useDone } from "../../components/toast.tsx";

/** Asks for confirmation and deletes an API, or explains its delete protection. */
export function DeleteApi({
  api,
  onClose,
  onDeleted = onClose,
}: {
  api: Row<"admin.listApis">;
  onClose: () => void;
  onDeleted?: () => void;
}): ReactNode {
  const done = useDone(onDeleted);
  const remove = useChange("apis.deleteApi", { refreshes: ["admin.listApis", "admin.searchKeys"] });
  if (api.deleteProtection) return <Protected api={api} onClose={onClose} />;
  const count = `${api.keys.count.toLocaleString("en")}${api.keys.hasMore ? " or more" : ""}`;
  return (
    <ConfirmDialog
      title={`Delete the API ${api.name}`}
      onClose={onClose}
      action="Delete the API"
      typed={api.name}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        remove.mutate(
          { apiId: api.apiId },
          {
            onSuccess: () => done(`API ${api.name} deleted.`),
          },
        )
      }
    >
      <p>
        All of its keys ({count}) stop working everywhere within 30 seconds. This cannot be undone in the dashboard: the
        rows are kept for a limited time, and only a database administrator can restore them.
      </p>
    </ConfirmDialog>
  );
}

/** Explains how to proceed if an API is delete-protected. */
function Protected({ api, onClose }: { api: Row<"admin.listApis">; onClose: () => void }): ReactNode {
  return (
    <Dialog title={`The API ${api.name} is protected`} isOpen onClose={onClose}>
      <p>
        Delete protection is enabled for this API, because deleting it stops all of its keys. Disable the protection in
        the{" "}
        <Link to="/apis/$apiId" params={{ apiId: api.apiId }} onClick={onClose}>
          settings of the API
        </Link>{" "}
        first.
      </p>
    </Dialog>
  );
}
