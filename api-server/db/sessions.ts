import type { Assignment, RolesOfGroups } from "../../core/sessions/assignments.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/** Identifies a person by the identity provider and the person's subject at that provider. */
export interface PersonRef {
  readonly issuer: string;
  readonly subject: string;
}

export interface SessionRow extends PersonRef {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly signed_in_by: "link" | "oidc";
  readonly groups: string[];
  readonly roles: Assignment[];
  readonly created_at: number;
  readonly last_seen_at: number;
  readonly expires_at: number;
  readonly ended_at: number | null;
}

/**
 * Returns the assignments of a session: those of its link, or those that the active roles file gives to the provider's groups. The file is
 * consulted at each call, so a change to it takes effect with the next call.
 */
export const assignmentsOf = (
  { signed_in_by: signedInBy, groups, roles }: Pick<SessionRow, "signed_in_by" | "groups" | "roles">,
  { rolesOfGroups }: { readonly rolesOfGroups: RolesOfGroups },
): readonly Assignment[] => (signedInBy === "link" ? roles : rolesOfGroups(groups));

/** A session, and the workspace that the call specifies. */
export interface SessionInWorkspaceRow extends SessionRow {
  /** Workspace of the call; `null` if the call specifies no workspace, or one that does not exist. */
  readonly workspace_id: string | null;
  readonly workspace_name: string | null;
  readonly workspace_enabled: boolean | null;
  readonly quota_per_minute: number | null;
}

/** Finds a session, including an ended one that is not removed yet. `workspace` is an id or a name; the id takes precedence. */
export async function findSession(
  db: Queryable,
  { tokenHash, workspace }: { tokenHash: string; workspace: string | null },
): Promise<SessionInWorkspaceRow | undefined> {
  const text = `select s.id, s.issuer, s.subject, s.name, s.email, s.signed_in_by, s.groups, s.roles, s.created_at,
                       s.last_seen_at, s.expires_at, s.ended_at,
                       w.id as workspace_id, w.name as workspace_name, w.enabled as workspace_enabled, w.quota_per_minute
                  from sessions s
                  left join workspaces w on (w.id = $2 or w.name = $2) and w.deleted_at is null
                 where s.token_hash = $1
                 order by (w.id = $2) desc
                 limit 1`;
  const { rows } = await db.query<SessionInWorkspaceRow>({
    name: "find-session",
    text,
    values: [tokenHash, workspace],
  });
  return rows[0];
}

export interface NewSession extends PersonRef {
  readonly id: string;
  readonly tokenHash: string;
  readonly name: string;
  readonly email: string | null;
  readonly signedInBy: SessionRow["signed_in_by"];
  readonly groups: readonly string[];
  readonly roles: readonly Assignment[];
  /** Creator of the sign-in link; `null` if the person signed in with OpenID Connect. */
  readonly linkMadeBy: string | null;
  readonly remoteIp: string | null;
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export async function insertSession(db: Queryable, session: NewSession): Promise<void> {
  const text = `insert into sessions (id, token_hash, issuer, subject, name, email, signed_in_by, groups, roles, link_made_by,
                                      remote_ip, user_agent, created_at, last_seen_at, expires_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14)`;
  await db.query({
    name: "insert-session",
    text,
    values: [
      session.id,
      session.tokenHash,
      session.issuer,
      session.subject,
      session.name,
      session.email,
      session.signedInBy,
      JSON.stringify(session.groups),
      JSON.stringify(session.roles),
      session.linkMadeBy,
      session.remoteIp,
      session.userAgent,
      session.createdAt,
      session.expiresAt,
    ],
  });
}

/**
 * Sets the time at which the session was last seen, unless the stored time is after `notSince`. The condition ensures that only one of
 * several concurrent calls writes the row.
 */
export async function updateSessionSeen(
  db: Queryable,
  { sessionId, seenAt, notSince }: { sessionId: string; seenAt: number; notSince: number },
): Promise<void> {
  const text = `update sessions
                   set last_seen_at = $2
                 where id = $1 and last_seen_at < $3`;
  await db.query({ name: "update-session-seen", text, values: [sessionId, seenAt, notSince] });
}

/** Ends the session with this token; returns `undefined` if there is no such open session. */
export async function endSession(
  db: Queryable,
  { tokenHash, endedAt }: { tokenHash: string; endedAt: number },
): Promise<SessionRow | undefined> {
  const text = `update sessions s
                   set ended_at = $2
                 where s.token_hash = $1 and s.ended_at is null
             returning s.id, s.issuer, s.subject, s.name, s.email, s.signed_in_by, s.groups, s.roles, s.created_at,
                       s.last_seen_at, s.expires_at, s.ended_at`;
  const { rows } = await db.query<SessionRow>({ name: "end-session", text, values: [tokenHash, endedAt] });
  return rows[0];
}

/** Ends all sessions of a person. Returns their number. */
export async function endSessionsOf(
  db: Queryable,
  { issuer, subject, endedAt }: PersonRef & { endedAt: number },
): Promise<number> {
  const text = `update sessions
                   set ended_at = $3
                 where issuer = $1 and subject = $2 and ended_at is null`;
  const { rowCount } = await db.query({ name: "end-sessions-of", text, values: [issuer, subject, endedAt] });
  return rowCount ?? 0;
}

/** Details of an open session. */
export interface OpenSessionRow {
  readonly id: string;
  readonly remote_ip: string | null;
  readonly user_agent: string | null;
  readonly signed_in_by: SessionRow["signed_in_by"];
  readonly created_at: number;
  readonly last_seen_at: number;
  readonly expires_at: number;
}

/** Returns open sessions, the newest first. */
export async function listOpenSessions(
  db: Queryable,
  { issuer, subject, nowMs, seenSince, rowsMax }: PersonRef & { nowMs: number; seenSince: number; rowsMax: number },
): Promise<OpenSessionRow[]> {
  const text = `select s.id, s.remote_ip, s.user_agent, s.signed_in_by, s.created_at, s.last_seen_at, s.expires_at
                  from sessions s
                 where s.issuer = $1 and s.subject = $2 and s.ended_at is null and s.expires_at >= $3 and s.last_seen_at >= $4
                 order by s.created_at desc, s.id
                 limit $5`;
  const values = [issuer, subject, nowMs, seenSince, rowsMax];
  const { rows } = await db.query<OpenSessionRow>({ name: "list-open-sessions", text, values });
  return rows;
}

/**
 * Removes one batch each of expired sessions, links and sign-in flows. Returns the number of rows in the largest batch; if it equals
 * `rowsMax`, more expired rows may exist.
 */
export async function removeOldSignIns(
  db: Queryable,
  { beforeMs, rowsMax }: { beforeMs: number; rowsMax: number },
): Promise<number> {
  const texts = [
    `delete from sessions
      where id in (select s.id from sessions s where s.expires_at < $1 order by s.expires_at limit $2 for update skip locked)`,
    `delete from sign_in_links
      where id in (select l.id from sign_in_links l where l.expires_at < $1 order by l.expires_at limit $2 for update skip locked)`,
    `delete from sign_in_flows
      where browser_hash in (select f.browser_hash from sign_in_flows f where f.expires_at < $1 order by f.expires_at limit $2
                                for update skip locked)`,
  ];
  const counts = [];
  for (const text of texts) counts.push((await db.query({ text, values: [beforeMs, rowsMax] })).rowCount ?? 0);
  return Math.max(...counts);
}
