import { endLinksFor, endSessionsNamed } from "../../db/sign-in-ends.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

export interface SignedOutPerson {
  readonly sessions: number;
  /** Number of unused links. */
  readonly links: number;
}

/** Maximum number of sessions that one audit log row lists, to keep it readable. */
const SESSIONS_NAMED = 20;

/**
 * Ends all sessions of the people with this name, e-mail address or subject, and invalidates the links for this name and those that the
 * ended sessions created. Takes effect with the next call.
 * @param logWorkspaceId the workspace whose audit log records the sign-out.
 */
export async function signOutPerson(
  administrator: Administrator,
  { person, logWorkspaceId }: { person: string; logWorkspaceId: string },
): Promise<SignedOutPerson> {
  return inTransaction(administrator, async (tx) => {
    const endedAt = administrator.nowMs();
    const sessions = await endSessionsNamed(tx, { person, endedAt });
    const sessionIds = sessions.map(({ id }) => id);
    const links = await endLinksFor(tx, { person, sessionIds, endedAt });
    if (sessions.length > 0 || links > 0) {
      await insertAdministration(tx, administrator, logWorkspaceId, [
        {
          event: "session.delete",
          description: `Signed ${person} out of ${sessions.length} sessions; ${links} links ended`,
          targets: sessions.slice(0, SESSIONS_NAMED).map(({ id, name }) => ({ type: "session", id, name })),
        },
      ]);
    }
    return { sessions: sessions.length, links };
  });
}
