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
  readonly createdAt: number;
  readonly expiresAt: number;
}

export async function insertSignInLink(db: Queryable, link: NewSignInLink): Promise<void> {
  const text = `insert into sign_in_links (id, token_hash, name, role, workspace_id, created_by, created_at, expires_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8)`;
  const { id, tokenHash, name, role, workspaceId, madeBy, createdAt, expiresAt } = link;
  await db.query({
    name: "insert-sign-in-link",
    text,
    values: [id, tokenHash, name, role, workspaceId, madeBy, createdAt, expiresAt],
  });
}

export interface TakenLinkRow {
  readonly id: string;
  readonly name: string;
  readonly role: PersonRole;
  readonly workspace_id: string | null;
  readonly created_by: string;
}

/**
 * Consumes a link that is unused and not expired, and returns it. Of several concurrent calls, only one gets the link. The statement
 * guarantees this: Postgres makes the other calls wait for the row, and then checks their condition again.
 */
export async function takeSignInLink(
  tx: Queryable,
  { tokenHash, nowMs }: { tokenHash: string; nowMs: number },
): Promise<TakenLinkRow | undefined> {
  const text = `update sign_in_links l
                   set used_at = $2
                 where l.token_hash = $1 and l.used_at is null and l.expires_at >= $2
             returning l.id, l.name, l.role, l.workspace_id, l.created_by`;
  const { rows } = await tx.query<TakenLinkRow>({ name: "take-sign-in-link", text, values: [tokenHash, nowMs] });
  return rows[0];
}
