import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useLostSince } from "../api/connection.ts";
import { useWorkspace } from "../api/session.ts";
import { Ago } from "../components/ago.tsx";
import { Button } from "../components/button.tsx";
import { Notice } from "../components/notice.tsx";

/** Shows that the server does not respond, since when, and that the displayed data may be outdated. */
export function ConnectionBar(): ReactNode {
  const lostSince = useLostSince();
  const client = useQueryClient();
  if (lostSince === undefined) return null;
  return (
    <Notice
      kind="warn"
      actions={<Button onClick={() => void client.refetchQueries({ type: "active" })}>Try now</Button>}
    >
      The server has not responded since <Ago atMs={lostSince} />. The page shows data from before that time. It
      reconnects automatically.
    </Notice>
  );
}

/** Notice that the session has ended. The page behind it stays open, so that input is not lost. */
export function SessionEnded({ again }: { again: () => void }): ReactNode {
  return (
    <Notice kind="bad" actions={<Button onClick={again}>I have signed in</Button>}>
      Your session has ended. The page keeps your input:{" "}
      <a href="/dashboard/sign-in" target="_blank" rel="noreferrer">
        sign in again in another tab
      </a>
      , then continue.
    </Notice>
  );
}

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
