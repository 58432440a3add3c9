import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useContext, useMemo, useState } from "react";
import { OPERATOR_PERMISSIONS } from "../../../core/permissions/operator.ts";
import type { ApiError } from "../../api/api-error.ts";
import { createApi } from "../../api/client.ts";
import { ConnectionContext } from "../../api/connection.ts";
import type { Row } from "../../api/queries.ts";
import { useWorkspace } from "../../api/session.ts";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { useOtherWorkspace, useUpdateWorkspace } from "./use-update-workspace.ts";
import type { Workspace } from "./workspace.ts";

interface DialogProps {
  readonly workspace: Workspace;
  readonly onClose: () => void;
}

export function DisableWorkspace({ workspace, onClose }: DialogProps): ReactNode {
  const { workspace: shown } = useWorkspace();
  const [{ workspaceId, name }] = useState(workspace);
  const other = useOtherWorkspace(workspaceId);
  const { save, isBusy, error } = useUpdateWorkspace(workspaceId, onClose);
  if (other === undefined) {
    return (
      <Dialog title={`The workspace ${name} stays enabled`} isOpen onClose={onClose}>
        <p>
          It is the only enabled workspace: the API could not be called to enable it again. Enable or create another
          workspace first, or use <code>postern workspace disable</code>, which works without an enabled workspace.
        </p>
      </Dialog>
    );
  }
  return (
    <ConfirmDialog
      title={`Disable the workspace ${name}`}
      onClose={onClose}
      action="Disable the workspace"
      typed={name}
      isBusy={isBusy}
      error={error}
      onConfirm={() => save({ enabled: false }, `Workspace ${name} disabled.`)}
    >
      {shown.id === workspaceId && (
        <Notice kind="warn">
          <strong>This page shows the workspace.</strong> The dashboard will switch to <bdi>{other.name}</bdi>, from
          which you can enable it again.
        </Notice>
      )}
      <p>Effects everywhere within 30 seconds, until the workspace is enabled again:</p>
      <ul>
        <li>Root keys get 403: backends cannot verify or change keys, and the operator cannot apply manifests.</li>
        <li>Keys verify as FORBIDDEN, also at gates, so customers' requests are rejected.</li>
        <li>Dashboard users cannot open its pages.</li>
      </ul>
      <p>No data is deleted.</p>
      <ItsRootKeys workspaceId={workspaceId} />
    </ConfirmDialog>
  );
}

const ROOT_KEYS_READ = 100;
const NAMES_SHOWN = 5;

/** Lists the root keys that lose access: those that are currently valid. Adds a notice if one of them may belong to the operator. */
function ItsRootKeys({ workspaceId }: { workspaceId: string }): ReactNode {
  const { data, error, refetch } = useRootKeysOf(workspaceId);
  if (error !== null) return <ErrorNote error={error} doing="Reading the root keys" again={() => void refetch()} />;
  if (data === undefined) return <p className="muted">Reading the root keys …</p>;
  if (data.rows.length === 0) return <p>The workspace has no active root keys.</p>;
  const operators = data.rows.filter(mayOperate);
  return (
    <>
      {operators.length > 0 && (
        <Notice kind="warn">
          <strong>The operator may use {operators.length === 1 ? "this root key" : "one of these root keys"}:</strong>{" "}
          <Names rootKeys={operators} hasMore={false} />, which has all permissions of the operator. The operator could
          no longer apply manifests of this workspace.
        </Notice>
      )}
      <p>
        Root keys that stop working: <Names rootKeys={data.rows} hasMore={data.hasMore} />.
      </p>
    </>
  );
}

type RootKey = Row<"admin.listRootKeys">;

const mayOperate = ({ permissions }: RootKey): boolean =>
  OPERATOR_PERMISSIONS.every((tuple) => permissions.includes(tuple));

/** Shows names of root keys, most recently used first. */
function Names({ rootKeys, hasMore }: { rootKeys: readonly RootKey[]; hasMore: boolean }): ReactNode {
  const sorted = rootKeys.toSorted((one, other) => (other.lastUsedOn ?? "").localeCompare(one.lastUsedOn ?? ""));
  const more = sorted.length - NAMES_SHOWN;
  return (
    <>
      {sorted.slice(0, NAMES_SHOWN).map((rootKey, at) => (
        <span key={rootKey.rootKeyId}>
          {at > 0 && ", "}
          <bdi>{rootKey.name ?? rootKey.rootKeyId}</bdi> (
          {rootKey.lastUsedOn === undefined ? "never used" : `used ${rootKey.lastUsedOn}`})
        </span>
      ))}
      {more > 0 && ` and ${more}${hasMore ? " or more" : ""} others`}
    </>
  );
}

/** Reads the root keys of any workspace, even if the page shows another one. */
function useRootKeysOf(workspace: string) {
  const { report } = useContext(ConnectionContext);
  const api = useMemo(() => createApi({ workspace, report }), [workspace, report]);
  return useQuery<{ readonly rows: readonly RootKey[]; readonly hasMore: boolean }, ApiError>({
    queryKey: [workspace, "admin.listRootKeys", "to be disabled"],
    queryFn: async ({ signal }) => {
      const { data, next } = await api.call(
        "admin.listRootKeys",
        { state: "active", limit: ROOT_KEYS_READ },
        { signal },
      );
      return { rows: data, hasMore: next !== undefined };
    },
  });
}

export function EnableWorkspace({ workspace, onClose }: DialogProps): ReactNode {
  const [{ workspaceId, name }] = useState(workspace);
  const { save, isBusy, error } = useUpdateWorkspace(workspaceId, onClose);
  return (
    <ConfirmDialog
      title={`Enable the workspace ${name}`}
      onClose={onClose}
      action="Enable the workspace"
      isBusy={isBusy}
      error={error}
      onConfirm={() => save({ enabled: true }, `Workspace ${name} enabled.`)}
    >
      <p>Its root keys and keys work again within 30 seconds, and its users can open the workspace.</p>
    </ConfirmDialog>
  );
}
