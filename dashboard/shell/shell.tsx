import { Outlet, useRouter, useSearch } from "@tanstack/react-router";
import { type ReactNode, useContext, useEffect, useMemo, useRef } from "react";
import type { Session } from "../../core/sessions/session.ts";
import { ApiContext } from "../api/api-context.ts";
import { createApi } from "../api/client.ts";
import { ConnectionContext } from "../api/connection.ts";
import { PlaceContext, useSessionQuery } from "../api/session.ts";
import { ErrorNote } from "../components/error-note.tsx";
import { Toasts } from "../components/toast.tsx";
import { SignOut } from "./account-menu.tsx";
import { PageLoading } from "./fallback-pages.tsx";
import { Frame } from "./frame.tsx";
import { ConnectionBar, SessionEnded, WorkspaceDisabled } from "./notices.tsx";
import { linkToken, SignIn } from "./sign-in.tsx";

/** Frame around every page: the signed-in person, the workspace, and the connection state. */
export function Shell(): ReactNode {
  const connection = useContext(ConnectionContext);
  const { data: session, error, isPending, refetch } = useSessionQuery(connection.report);
  // Last session. When it ends, the page stays open with its input.
  const last = useRef<Session>(null);
  if (session) last.current = session;
  const shown = session ?? last.current;
  useFocusOnNavigation();

  // Shows the sign-in even to a signed-in person, because a sign-in link may be for another account.
  if (linkToken !== undefined) return <SignIn />;
  if (shown === null && isPending) return <PageLoading />;
  if (shown === null && error !== null) {
    return (
      <main className="alone">
        <ErrorNote error={error} doing="Checking the session" again={() => void refetch()} />
      </main>
    );
  }
  if (shown === null) return <SignIn />;
  return (
    <SignedIn session={shown}>
      {session === null && <SessionEnded again={() => void refetch()} />}
      <ConnectionBar />
    </SignedIn>
  );
}

function SignedIn({ session, children }: { session: Session; children: ReactNode }): ReactNode {
  const { report } = useContext(ConnectionContext);
  const wanted = useSearch({ from: "__root__", select: (search) => search.workspace });
  const { workspaces } = session;
  const workspace =
    workspaces.find(({ id }) => id === wanted) ?? workspaces.find(({ enabled }) => enabled) ?? workspaces[0];
  const id = workspace?.id;
  const api = useMemo(() => createApi({ workspace: id, report }), [id, report]);
  const place = useMemo(() => (workspace === undefined ? undefined : { session, workspace }), [session, workspace]);
  if (place === undefined) {
    return (
      <main className="alone">
        <h1>No workspace</h1>
        <WorkspaceNotFound session={session} />
      </main>
    );
  }
  return (
    <ApiContext value={api}>
      <PlaceContext value={place}>
        <Toasts>
          <Frame
            notices={
              <>
                {children}
                <WorkspaceDisabled />
              </>
            }
          >
            {/* The key remounts the page when the workspace changes, so that no state of the page survives. */}
            <Outlet key={id} />
          </Frame>
        </Toasts>
      </PlaceContext>
    </ApiContext>
  );
}

/**
 * Roles come from the file that maps groups to roles. The admin needs the exact group names from the OpenID provider, so they are shown.
 */
function WorkspaceNotFound({ session: { person, isInstallationAdmin } }: { session: Session }): ReactNode {
  if (isInstallationAdmin)
    return (
      <p>
        There is no workspace yet: create one with <code>postern workspace create</code>.
      </p>
    );
  return (
    <>
      <p>
        You are signed in as {person.name}, but have no role in any workspace. An admin can assign a role to one of your
        groups; it takes effect immediately.
      </p>
      <p>Your groups: {person.groups.length === 0 ? "the provider returned no groups" : person.groups.join(", ")}.</p>
      <SignOut hasOthers={false} />
    </>
  );
}

/** Focuses the title after a navigation. Details that open within a page change only the search, which does not move the focus. */
function useFocusOnNavigation(): void {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe("onRendered", ({ fromLocation, pathChanged }) => {
        if (fromLocation !== undefined && pathChanged) document.querySelector<HTMLElement>("main h1")?.focus();
      }),
    [router],
  );
}
