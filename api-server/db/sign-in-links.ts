import type { PersonRole } from "../../core/permissions/person-roles.ts";
import type { Queryable } from "../../postgres/queryable.ts";

export interface NewSignInLink {
  readonly id: string;
  readonly tokenHash: string;
  /** Name of the person. */
  readonly name: string;
  readonly role: PersonRole;
  /** Id of the workspace; `null` means all workspaces. */
  readonly workspaceId: string | null;
  readonly madeBy: string;
  /** Session of the creator; `null` if a command or a root key created the link. */
  readonly madeBySession: string | null;
  /** Time by which the session that the link opens must end, Unix ms; `null` if only the configuration limits the session. */
  readonly sessionExpiresAt: number | null;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export async function insertSignInLink(db: Queryable, link: NewSignInLink): Promise<void> {
  const text = `insert into sign_in_links (id, token_hash, name, role, workspace_id, created_by, created_by_session,
                                           session_expires_at, created_at, expires_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;
  const { id, tokenHash, name, role, workspaceId, madeBy, madeBySession, sessionExpiresAt, createdAt, expiresAt } =
    link;
  await db.query({
    name: "insert-sign-in-link",
    text,
    values: [id, tokenHash, name, role, workspaceId, madeBy, madeBySession, sessionExpiresAt, createdAt, expiresAt],
  });
}

export interface TakenLinkRow {
  readonly id: string;
  readonly name: string;
  readonly role: PersonRole;
  readonly workspace_id: string | null;
  readonly created_by: string;
  readonly session_expires_at: number | null;
}

/**
 * Consumes a link that is unused and not expired, and returns it. Of several concurrent calls, only one gets the link: Postgres makes the
 * others wait for the row lock, and then checks their condition again.
 */
export async function takeSignInLink(
  tx: Queryable,
  { tokenHash, nowMs }: { tokenHash: string; nowMs: number },
): Promise<TakenLinkRow | undefined> {
  const text = `update sign_in_links l
                   set used_at = $2
                 where l.token_hash = $1 and l.used_at is null and l.expires_at >= $2
             returning l.id, l.name, l.role, l.workspace_id, l.created_by, l.session_expires_at`;
  const { rows } = await tx.query<TakenLinkRow>({ name: "take-sign-in-link", text, values: [tokenHash, nowMs] });
  return rows[0];
}

/** Selects the links for one workspace and, with `includesAll`, also the links for all workspaces. */
export interface LinkScope {
  readonly workspaceId: string;
  readonly includesAll: boolean;
  readonly nowMs: number;
}

export interface OpenLinkRow extends Omit<TakenLinkRow, "session_expires_at"> {
  readonly created_at: number;
  readonly expires_at: number;
}

/** Returns links that are unused and not expired, starting at `cursor`, sorted by id. */
export async function pageOpenLinks(
  db: Queryable,
  { workspaceId, includesAll, nowMs, cursor, rowsMax }: LinkScope & { cursor: string; rowsMax: number },
): Promise<OpenLinkRow[]> {
  const text = `select l.id, l.name, l.role, l.workspace_id, l.created_by, l.created_at, l.expires_at
                  from sign_in_links l
                 where l.used_at is null and l.expires_at >= $1
                   and (l.workspace_id = $2 or ($3 and l.workspace_id is null))
                   and l.id >= $4
                 order by l.id
                 limit $5`;
  const values = [nowMs, workspaceId, includesAll, cursor, rowsMax];
  return (await db.query<OpenLinkRow>({ name: "page-open-links", text, values })).rows;
}

/** Invalidates a link. Returns `undefined` if there is no such link that is unused and not expired. */
export async function endSignInLink(
  tx: Queryable,
  { linkId, workspaceId, includesAll, nowMs }: LinkScope & { linkId: string },
): Promise<Pick<OpenLinkRow, "id" | "name"> | undefined> {
  const text = `update sign_in_links l
                   set used_at = $1
                 where l.id = $4 and l.used_at is null and l.expires_at >= $1
                   and (l.workspace_id = $2 or ($3 and l.workspace_id is null))
             returning l.id, l.name`;
  const values = [nowMs, workspaceId, includesAll, linkId];
  const { rows } = await tx.query<Pick<OpenLinkRow, "id" | "name">>({ name: "end-sign-in-link", text, values });
  return rows[0];
}
