import { useNavigate } from "@tanstack/react-router";
import type { SessionWorkspace } from "../../../core/sessions/session.ts";
import type { ApiError } from "../../api/api-error.ts";
import { useChange, useReadAgain } from "../../api/queries.ts";
import { useSessionAgain, useWorkspace } from "../../api/session.ts";
import { useDone } from "../../components/toast.tsx";
import { SHOWN_BY } from "./workspace.ts";

export interface WorkspaceChange {
  readonly name?: string;
  readonly enabled?: boolean;
  readonly quotaPerMinute?: number | null;
}

/** Returns the first enabled workspace other than this one: the page switches to it when this workspace is disabled. */
export function useOtherWorkspace(workspaceId: string): SessionWorkspace | undefined {
  return useWorkspace().session.workspaces.find(({ id, enabled }) => enabled && id !== workspaceId);
}

/** Returns whether the change makes the server reject all requests in the workspace. */
const closes = ({ enabled, quotaPerMinute }: WorkspaceChange): boolean => enabled === false || quotaPerMinute === 0;

/**
 * Changes a workspace and shows a success message. If the change disables the workspace that the page shows, the page switches to another
 * workspace, where the change can be undone.
 */
export function useUpdateWorkspace(
  workspaceId: string,
  onClose: () => void,
): { readonly isBusy: boolean; readonly error: ApiError | null; save(change: WorkspaceChange, text: string): void } {
  const { workspace: shown } = useWorkspace();
  const readAgain = useReadAgain();
  const navigate = useNavigate();
  const done = useDone(onClose);
  const sessionAgain = useSessionAgain();
  const other = useOtherWorkspace(workspaceId);
  const update = useChange("admin.updateWorkspace", { refreshes: [] });
  const onDone = (change: WorkspaceChange, text: string): void => {
    done(text);
    sessionAgain();
    if (shown.id === workspaceId && closes(change) && other !== undefined) {
      void navigate({ to: "/workspaces", search: { workspace: other.id } });
      return;
    }
    readAgain(SHOWN_BY);
  };
  return {
    isBusy: update.isPending,
    error: update.error,
    save(change, text) {
      if (!update.isPending) update.mutate({ workspaceId, ...change }, { onSuccess: () => onDone(change, text) });
    },
  };
}
