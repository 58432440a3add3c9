import type { ReactNode } from "react";
import { useChange } from "../../api/queries.ts";
import { browserName } from "../../components/browser-name.ts";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { useDone } from "../../components/toast.tsx";
import { countText } from "../../components/uses.ts";
import { type OpenSession, type PersonDetails, SHOWN_BY } from "./person.ts";

/** Asks for confirmation and ends one session of a person, or all. */
export function SignOutPerson({
  person,
  session,
  onClose,
  onEnded,
}: {
  person: PersonDetails;
  /** The session to end. Default: all sessions of the person. */
  session: OpenSession | undefined;
  onClose: () => void;
  onEnded: () => void;
}): ReactNode {
  const done = useDone(onEnded);
  const end = useChange("admin.deleteSession", { refreshes: SHOWN_BY });
  const { name, sessions, hasMore, signedInBy } = person;
  const count = hasMore ? `more than ${countText(sessions, "session")}` : countText(sessions, "session");
  const body =
    session === undefined
      ? { sessionId: person.sessionId, everywhere: true }
      : { sessionId: session.sessionId, everywhere: false };
  return (
    <ConfirmDialog
      title={session === undefined ? `Sign out ${name} everywhere` : `End a session of ${name}`}
      action={session === undefined ? "Sign out everywhere" : "End the session"}
      isBusy={end.isPending}
      error={end.error}
      onClose={onClose}
      onConfirm={() =>
        end.mutate(body, {
          onSuccess: (ended) => done(`${countText(ended.sessions, "session")} of ${name} ended.`),
        })
      }
    >
      <p>
        {session === undefined
          ? `The person loses ${count} with the next request.`
          : `${browserName(session.userAgent ?? null)} at ${session.address ?? "an unknown address"} loses its session with the next request.`}{" "}
        Unused sign-in links that were made there end too.
      </p>
      <p>
        {signedInBy === "oidc"
          ? "The person can sign in again with the OpenID provider: to prevent that, first change the roles file or the person's groups."
          : "The person needs another sign-in link to return."}
      </p>
    </ConfirmDialog>
  );
}
