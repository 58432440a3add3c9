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
import { ConnectionBar } from "./connection-bar.tsx";
import { Frame } from "./frame.tsx";
import { linkToken } from "./link-token.ts";
import { PageLoading } from "./page-loading.tsx";
import { SessionEnded } from "./session-ended.tsx";
import { SignIn } from "./sign-in.tsx";
import { WorkspaceDisabled } from "./workspace-disabled.tsx";

/** What stands around every page: who is signed in, in which workspace, and whether the server answers. */
export function Shell(): ReactNode {
  const connection = useContext(ConnectionContext);
  const { data: session, error, isPending, refetch } = useSessionQuery(connection.report);
  // A page that is open when its session ends stays, with what was typed into it.
  const last = useRef<Session>(null);
  if (session) last.current = session;
  const shown = session ?? last.current;
  useFocusOnNavigation();

  // By a link, a person who is signed in may become another one.
  if (linkToken !== undefined) return <SignIn />;
  if (shown === null && isPending) return <PageLoading />;
  if (shown === null && error !== null) {
    return (
      <main className="alone">
        <ErrorNote error={error} doing="Finding out who is signed in" again={() => void refetch()} />
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
            {/* Another workspace is another world: nothing of a page outlives the switch. */}
            <Outlet key={id} />
          </Frame>
        </Toasts>
      </PlaceContext>
    </ApiContext>
  );
}

/** A role comes from the file that maps groups; the names of the groups, as the provider wrote them, are what its admin needs to know. */
function WorkspaceNotFound({ session: { person, isInstallationAdmin } }: { session: Session }): ReactNode {
  if (isInstallationAdmin)
    return (
      <p>
        There is none yet: make one with <code>postern workspace create</code>.
      </p>
    );
  return (
    <>
      <p>
        You are signed in as {person.name}, but have no role in any workspace. An admin can give one to a group of
        yours; it holds at once.
      </p>
      <p>Your groups: {person.groups.length === 0 ? "none was named by the provider" : person.groups.join(", ")}.</p>
      <SignOut hasOthers={false} />
    </>
  );
}

/** The title of a page that was gone to gets the focus. Details that open within a page are in the search, which is left alone. */
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
