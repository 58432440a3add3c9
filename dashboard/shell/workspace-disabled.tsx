import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useWorkspace } from "../api/session.ts";
import { Notice } from "../components/notice.tsx";

/** Explains why the data of the workspace cannot be read or changed, and who can enable the workspace. */
export function WorkspaceDisabled(): ReactNode {
  const { session, workspace } = useWorkspace();
  if (workspace.enabled) return null;
  const other = session.workspaces.find(({ enabled }) => enabled);
  return (
    <Notice kind="warn">
      <p>
        The workspace <bdi>{workspace.name}</bdi> is disabled: all requests in it are rejected.{" "}
        {session.isInstallationAdmin && other !== undefined ? (
          <Link to="/workspaces" search={{ workspace: other.id, search: workspace.id }}>
            Enable it from another workspace
          </Link>
        ) : (
          <>
            An admin of all workspaces can enable it, or <code>postern workspace enable</code>.
          </>
        )}
      </p>
    </Notice>
  );
}
