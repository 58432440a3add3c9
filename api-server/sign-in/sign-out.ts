import { hashKey } from "../../core/keys/key-string.ts";
import { endOf } from "../../core/sessions/session-end.ts";
import { assignmentsOf, endSession, endSessionsOf } from "../db/sessions.ts";
import { inTransaction } from "../db/transaction.ts";
import type { Deps } from "../deps.ts";
import type { Origin } from "../domain/actor.ts";
import { type SessionRules, timesOf } from "../sessions/signed-in.ts";
import { logOfPerson } from "./sign-in-log.ts";

/**
 * Ends the session with this token and, with `everywhere`, all other sessions of the same person. Ignores an unknown token, for example
 * when a page signs out twice. An expired session cannot end others, because its cookie may have been stolen.
 */
export async function signOut(
  deps: Deps,
  rules: SessionRules,
  { token, everywhere, origin }: { token: string; everywhere: boolean; origin: Origin },
): Promise<void> {
  await inTransaction(deps, async (tx) => {
    const endedAt = deps.nowMs();
    const session = await endSession(tx, { tokenHash: hashKey(token), endedAt });
    if (session === undefined) return;
    const { issuer, subject } = session;
    const times = { ...timesOf(session), endedAtMs: null };
    const lived = endOf(times, { idleMs: rules.times.idleMs, nowMs: endedAt }) === undefined;
    const others = everywhere && lived ? await endSessionsOf(tx, { issuer, subject, endedAt }) : 0;
    const description = everywhere
      ? `${session.name} signed out everywhere: ${others + 1} sessions`
      : `${session.name} signed out`;
    const assignments = assignmentsOf(session, rules);
    await logOfPerson(tx, { deps, origin, session, assignments, event: { event: "session.delete", description } });
  });
}
