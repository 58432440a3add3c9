import { PublicError } from "../../core/errors.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { type Assignment, namedWorkspaces } from "../../core/sessions/assignments.ts";
import { endOf, SEEN_EVERY_MS, type SessionEnd, type SessionTimes } from "../../core/sessions/session-end.ts";
import type { Deps } from "../deps.ts";
import { findSession, type SessionInWorkspaceRow, type SessionRow, updateSessionSeen } from "../store/sessions.ts";
import { listEnterable } from "../store/workspaces.ts";
import type { DashboardAddress } from "./own-origin.ts";

/*
 * Who a session is. It is read for each call and cached nowhere: what ends it, or changes what its person may do, holds for the next call.
 * People make few calls; backends, which make many, have root keys.
 */

export interface SessionRules {
  readonly times: SessionTimes;
  readonly address: DashboardAddress;
  /** What the groups of a person are worth by the file in force; nothing without one. */
  readonly rolesOfGroups: (groups: readonly string[]) => readonly Assignment[];
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
  /** The one that was named, or the first that the person may enter; undefined when there is none. Whether the person may enter it is not looked at. */
  readonly workspace: EnteredWorkspace | undefined;
}

type Parts = Pick<Deps, "db" | "nowMs">;

/**
 * The session with this token. Throws PublicError, 401 `session_ended`, when there is none that lives.
 * @param isAttended whether the person did something: then the session is marked as seen. A page that is left open asks by itself, which
 *   must not keep a session alive.
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

/** By a link what it gave; by a provider what the file in force makes of the groups, so that a changed file holds for the next call. */
export const assignmentsOf = (session: SessionRow, rules: SessionRules): readonly Assignment[] =>
  session.signed_in_by === "link" ? session.roles : rules.rolesOfGroups(session.groups);

export const timesOf = (row: SessionRow) => ({
  lastSeenAtMs: row.last_seen_at,
  expiresAtMs: row.expires_at,
  endedAtMs: row.ended_at,
});

const WHY: Readonly<Record<SessionEnd, string>> = {
  signedOut: "The session was signed out.",
  idle: "The session ended because it was not used for a while.",
  tooOld: "The session ended because it was too old.",
};

/** A token that is not known gets the answer of one that was signed out: its row is removed some time later. */
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
