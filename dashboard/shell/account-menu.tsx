import { useMutation } from "@tanstack/react-query";
import { CircleUserRound } from "lucide-react";
import { type ReactNode, useId } from "react";
import type { OpenSession } from "../../core/sessions/session.ts";
import { signOut } from "../api/auth.ts";
import { useWorkspace } from "../api/session.ts";
import { Ago } from "../components/ago.tsx";
import { browserName } from "../components/browser-name.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { ThemeSwitch } from "./theme.tsx";
import "./account-menu.css";

/** Maximum number of roles to show; an admin of all workspaces has one role in each workspace. */
const ROLES_SHOWN = 20;

/** Shows the signed-in person and their roles, with the sign-out button. */
export function AccountMenu(): ReactNode {
  const { session, workspace } = useWorkspace();
  const { person, workspaces, isInstallationAdmin, sessions } = session;
  const id = useId();
  return (
    <>
      <button
        type="button"
        className="button button-quiet"
        popoverTarget={id}
        title={`${workspace.role} of ${workspace.name}`}
      >
        <CircleUserRound size={18} aria-hidden />
        <span className="cut account-name">{person.name}</span>
      </button>
      <div id={id} popover="auto" className="account">
        <section>
          <h2>{person.name}</h2>
          {person.email !== null && <p className="muted">{person.email}</p>}
          {person.groups.length > 0 && <p className="muted">Groups: {person.groups.join(", ")}</p>}
        </section>
        <section>
          <h3>Roles</h3>
          <ul>
            {isInstallationAdmin ? (
              <li>
                <span>every workspace</span> <span className="muted">admin</span>
              </li>
            ) : (
              workspaces.slice(0, ROLES_SHOWN).map(({ id: workspaceId, name, role }) => (
                <li key={workspaceId}>
                  <span className="cut">{name}</span> <span className="muted">{role}</span>
                </li>
              ))
            )}
          </ul>
          {!isInstallationAdmin && workspaces.length > ROLES_SHOWN && (
            <p className="muted">and {workspaces.length - ROLES_SHOWN} more</p>
          )}
        </section>
        <ThemeSwitch />
        <section>
          <h3>Signed in</h3>
          <ul>
            {sessions.map((one) => (
              <SessionLine key={one.id} session={one} />
            ))}
          </ul>
        </section>
        <SignOut hasOthers={sessions.length > 1} />
      </div>
    </>
  );
}

function SessionLine({ session }: { session: OpenSession }): ReactNode {
  const { isThis, address, userAgent, createdAt, lastSeenAt } = session;
  return (
    <li>
      <span className="cut" title={userAgent ?? undefined}>
        {browserName(userAgent)}, {address ?? "unknown address"}
        {isThis && " (current)"}
      </span>
      <span className="muted">
        since <Ago atMs={createdAt} />
        {!isThis && (
          <>
            , last used <Ago atMs={lastSeenAt} />
          </>
        )}
      </span>
    </li>
  );
}

/** Button that signs out. It reloads the page, so that no data of the person stays in memory. */
export function SignOut({ hasOthers }: { hasOthers: boolean }): ReactNode {
  const { mutate, error, isPending } = useMutation({
    mutationFn: signOut,
    onSuccess: () => location.assign("/dashboard/sign-in?signed-out"),
  });
  return (
    <>
      {error !== null && <ErrorNote error={error} doing="Signing out" />}
      <div className="account-buttons">
        <Button isBusy={isPending} onClick={() => mutate(false)}>
          Sign out
        </Button>
        {hasOthers && (
          <Button isBusy={isPending} onClick={() => mutate(true)}>
            Sign out everywhere
          </Button>
        )}
      </div>
    </>
  );
}
