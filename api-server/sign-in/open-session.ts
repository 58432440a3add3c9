import type { PoolClient } from "pg";
import { makeId } from "../../core/ids.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import type { Assignment } from "../../core/sessions/assignments.ts";
import type { SessionTimes } from "../../core/sessions/session-end.ts";
import { endSession, insertSession, type NewSession } from "../db/sessions.ts";
import type { Deps } from "../deps.ts";
import type { Origin } from "../domain/actor.ts";
import { logOfPerson } from "./sign-in-log.ts";

const TOKEN_BYTES = 32;

/** Returns a new token: 256 bits in base64url. */
export const newToken = ({ randomBytes }: Pick<Deps, "randomBytes">): string =>
  Buffer.from(randomBytes(TOKEN_BYTES)).toString("base64url");

export interface Person
  extends Pick<NewSession, "issuer" | "subject" | "name" | "email" | "signedInBy" | "groups" | "roles" | "linkMadeBy"> {
  /** The person's current assignments, for the audit log. */
  readonly assignments: readonly Assignment[];
  /** Sign-in method, for the audit log. */
  readonly how: string;
}

/**
 * Opens a session, in the transaction that consumes the link or sign-in flow. To prevent session fixation, ends the session of the cookie
 * that the browser sent, because an attacker may have set that cookie. Returns the token of the new session.
 */
export async function openSession(
  tx: PoolClient,
  {
    deps,
    times,
    person,
    oldToken,
    origin,
    endsBy = Number.POSITIVE_INFINITY,
  }: {
    deps: Pick<Deps, "nowMs" | "randomBytes">;
    times: SessionTimes;
    person: Person;
    oldToken: string | undefined;
    origin: Origin;
    /** Time by which the session must end, Unix ms. Default: only `times` limits the session. */
    endsBy?: number | undefined;
  },
): Promise<string> {
  const { assignments, how, ...kept } = person;
  const now = deps.nowMs();
  if (oldToken !== undefined) await endSession(tx, { tokenHash: hashKey(oldToken), endedAt: now });
  const token = newToken(deps);
  const session = { ...kept, id: makeId("session", deps.randomBytes(16)) };
  await insertSession(tx, {
    ...session,
    tokenHash: hashKey(token),
    remoteIp: origin.clientIp,
    userAgent: origin.userAgent ?? null,
    createdAt: now,
    expiresAt: Math.min(now + times.maxMs, endsBy),
  });
  const event = { event: "session.create", description: `${person.name} signed in ${how}` };
  await logOfPerson(tx, { deps, origin, session, assignments, event });
  return token;
}
