import { PublicError } from "../../core/errors.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { type Assignment, namedWorkspaces, type RolesOfGroups } from "../../core/sessions/assignments.ts";
import { endOf, SEEN_EVERY_MS, type SessionEnd, type SessionTimes } from "../../core/sessions/session-end.ts";
import type { CallingActor } from "../db/audit.ts";
import {
  assignmentsOf,
  findSession,
  type SessionInWorkspaceRow,
  type SessionRow,
  updateSessionSeen,
} from "../db/sessions.ts";
import { listEnterable } from "../db/workspaces.ts";
import type { Deps } from "../deps.ts";
import type { DashboardAddress } from "./own-origin.ts";

/*
 * Resolves sessions. Sessions are read for each call and never cached, so that the end of a session or a changed role takes effect with the
 * next call. This is affordable, because people make few calls; backends make many, but use root keys.
 */

export interface SessionRules {
  readonly times: SessionTimes;
  readonly address: DashboardAddress;
  /** Roles of a person's groups according to the active roles file. */
  readonly rolesOfGroups: RolesOfGroups;
}

export interface EnteredWorkspace {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly quotaPerMinute: number | undefined;
}

export interface SignedIn {
  readonly session: SessionRow;
  readonly assignments: readonly Assignment[];
  /**
   * Workspace that the call specifies; the person's access to it is not checked here. If the call specifies none, the first workspace that
   * the person can enter; `undefined` if the person can enter none.
   */
  readonly workspace: EnteredWorkspace | undefined;
}

type Parts = Pick<Deps, "db" | "nowMs">;

/**
 * Returns the session with this token. Throws PublicError 401 `session_ended` if there is no live session.
 * @param isAttended whether the person was active recently. Only then is the session marked as seen, because polling by an open page must
 *   not keep a session alive.
 */
export async function findSignedIn(
  { db, nowMs }: Parts,
  rules: SessionRules,
  {
    token,
    workspace,
    isAttended,
  }: { readonly token: string; readonly workspace: string | undefined; readonly isAttended: boolean },
): Promise<SignedIn> {
  const row = await findSession(db, { tokenHash: hashKey(token), workspace: workspace ?? null });
  const now = nowMs();
  if (row === undefined) throw sessionEnded("signedOut");
  const end = endOf(timesOf(row), { idleMs: rules.times.idleMs, nowMs: now });
  if (end !== undefined) throw sessionEnded(end);
  const notSince = now - SEEN_EVERY_MS;
  if (isAttended && row.last_seen_at < notSince)
    await updateSessionSeen(db, { sessionId: row.id, seenAt: now, notSince });
  const assignments = assignmentsOf(row, rules);
  const entered = workspace === undefined ? await firstWorkspace(db, assignments) : namedWorkspace(row);
  return { session: row, assignments, workspace: entered };
}

export const timesOf = (row: SessionRow) => ({
  lastSeenAtMs: row.last_seen_at,
  expiresAtMs: row.expires_at,
  endedAtMs: row.ended_at,
});

const WHY: Readonly<Record<SessionEnd, string>> = {
  signedOut: "The session was signed out.",
  idle: "The session ended because it was not used for a while.",
  tooOld: "The session ended because it reached its maximum lifetime.",
};

/**
 * Returns the error for an ended session. An unknown token gets the same error as a signed-out session, because the row of a signed-out
 * session is eventually removed.
 */
export const sessionEnded = (end: SessionEnd): PublicError =>
  new PublicError("session_ended", `${WHY[end]} Sign in again.`, { headers: { "WWW-Authenticate": "Bearer" } });

function namedWorkspace(row: SessionInWorkspaceRow): EnteredWorkspace | undefined {
  const { workspace_id: id, workspace_name: name, workspace_enabled: enabled, quota_per_minute: quota } = row;
  if (id === null || name === null) return undefined;
  return { id, name, enabled: enabled === true, quotaPerMinute: quota ?? undefined };
}

async function firstWorkspace(
  db: Parts["db"],
  assignments: readonly Assignment[],
): Promise<EnteredWorkspace | undefined> {
  const [row] = await listEnterable(db, { named: namedWorkspaces(assignments), rowsMax: 1 });
  return row && { id: row.id, name: row.name, enabled: row.enabled, quotaPerMinute: row.quota_per_minute ?? undefined };
}

/** Returns the audit log's actor for a person. It contains the session's id and how the session was created, but never the token. */
export const actorOf = ({
  id,
  issuer,
  subject,
  name,
}: Pick<SessionRow, "id" | "issuer" | "subject" | "name">): CallingActor & { readonly type: "user" } => ({
  type: "user",
  id: subject,
  name,
  meta: { issuer, session: id },
});
