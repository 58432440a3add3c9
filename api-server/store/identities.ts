import type { Queryable } from "./queryable.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface IdentityRow {
  readonly id: string;
  readonly external_id: string;
  readonly meta: Json | null;
}

/** Addressed by id or externalId; where both fit something, the id wins. */
export async function findIdentity(
  db: Queryable,
  { workspaceId, identity }: { workspaceId: string; identity: string },
): Promise<IdentityRow | undefined> {
  const text = `select id, external_id, meta
                  from identities
                 where workspace_id = $1 and (id = $2 or external_id = $2) and deleted_at is null
                 order by (id = $2) desc
                 limit 1`;
  const { rows } = await db.query<IdentityRow>({ name: "find-identity", text, values: [workspaceId, identity] });
  return rows[0];
}

export async function findIdentityIdByExternalId(
  db: Queryable,
  { workspaceId, externalId }: { workspaceId: string; externalId: string },
): Promise<string | undefined> {
  const text = "select id from identities where workspace_id = $1 and external_id = $2 and deleted_at is null";
  const { rows } = await db.query<{ id: string }>({
    name: "find-identity-id-by-external-id",
    text,
    values: [workspaceId, externalId],
  });
  return rows[0]?.id;
}

/** Unless a live identity has the external id already: false when nothing was inserted. */
export async function insertIdentity(
  tx: Queryable,
  identity: { id: string; workspaceId: string; externalId: string; meta: Json | null; createdAt: number },
): Promise<boolean> {
  const text = `insert into identities (id, workspace_id, external_id, meta, created_at)
                values ($1, $2, $3, $4::jsonb, $5)
                on conflict (workspace_id, external_id) where deleted_at is null do nothing`;
  const { id, workspaceId, externalId, meta, createdAt } = identity;
  const { rowCount } = await tx.query({
    name: "insert-identity",
    text,
    values: [id, workspaceId, externalId, meta === null ? null : JSON.stringify(meta), createdAt],
  });
  return rowCount === 1;
}
