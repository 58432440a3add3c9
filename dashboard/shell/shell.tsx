import { Link, Outlet, useRouter, useSearch } from "@tanstack/react-router";
import { type ReactNode, useContext, useEffect, useMemo, useRef } from "react";
import type { Session, SessionWorkspace } from "../../core/sessions/session.ts";
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
  return (
    <Toasts>
      <CurrentSession />
    </Toasts>
  );
}

function CurrentSession(): ReactNode {
  const connection = useContext(ConnectionContext);
  const { data: session, error, isPending, refetch } = useSessionQuery(connection.report);
  // Last session. It is kept when the session ends, so that the page stays open with its input.
  const last = useRef<Session>(null);
  if (session) last.current = session;
  const shown = session ?? last.current;
  useFocusOnNavigation();

  // Shows the sign-in page even to a signed-in person, because a sign-in link may be for another account.
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
    wanted === undefined
      ? (workspaces.find(({ enabled }) => enabled) ?? workspaces[0])
      : workspaces.find(({ id }) => id === wanted);
  const id = workspace?.id;
  const router = useRouter();
  useEffect(() => {
    if (wanted !== undefined || id === undefined) return;
    const { pathname: to } = router.state.location;
    void router.navigate({ to, search: (search) => ({ ...search, workspace: id }), hash: true, replace: true });
  }, [wanted, id, router]);
  const api = useMemo(() => createApi({ workspace: id, report }), [id, report]);
  const place = useMemo(() => (workspace === undefined ? undefined : { session, workspace }), [session, workspace]);
  if (place === undefined) {
    return (
      <main className="alone">
        <h1>No workspace</h1>
        {wanted === undefined || workspaces.length === 0 ? (
          <NoWorkspace session={session} />
        ) : (
          <OtherWorkspaces wanted={wanted} workspaces={workspaces} />
        )}
      </main>
    );
  }
  return (
    <ApiContext value={api}>
      <PlaceContext value={place}>
        <Frame
          notices={
            <>
              {children}
              <WorkspaceDisabled />
            </>
          }
        >
          {/* `key` remounts the page when the workspace changes, so that no state of the page survives. */}
          <Outlet key={id} />
        </Frame>
      </PlaceContext>
    </ApiContext>
  );
}

/**
 * Shown to a person who can open no workspace. Lists the person's groups, because an admin needs their exact names from the OpenID provider
 * to assign a role to one of them.
 */
function NoWorkspace({ session: { person, isInstallationAdmin } }: { session: Session }): ReactNode {
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

/** Shown if the URL has a workspace that the person cannot open. No other workspace is shown instead. */
function OtherWorkspaces({
  wanted,
  workspaces,
}: {
  wanted: string;
  workspaces: readonly SessionWorkspace[];
}): ReactNode {
  return (
    <>
      <p>
        The workspace <code>{wanted}</code> does not exist, or you have no role in it. You can open:
      </p>
      <ul>
        {workspaces.map(({ id, name }) => (
          <li key={id}>
            <Link to="/" search={{ workspace: id }}>
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

/**
 * Focuses the title after a navigation, unless a dialog has opened in the meantime. Opening details within a page changes only the search
 * parameters, so it does not move the focus.
 */
function useFocusOnNavigation(): void {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe("onRendered", ({ fromLocation, pathChanged }) => {
        if (fromLocation === undefined || !pathChanged || document.activeElement?.closest("[role=dialog]")) return;
        document.querySelector<HTMLElement>("main h1")?.focus();
      }),
    [router],
  );
}
