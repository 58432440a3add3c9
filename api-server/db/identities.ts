import type { Queryable } from "../../postgres/queryable.ts";
import { containing, fitting, type Positioned } from "./pages.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface IdentityRow {
  readonly id: string;
  readonly external_id: string;
  readonly meta: Json | null;
}

/** Finds an identity by id or externalId. If both match, the id takes precedence. */
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

/**
 * Like `findIdentity`, but also locks the identity: other transactions cannot change its row until the current transaction ends. Keys can
 * still be attached to the identity, because its id does not change.
 */
export async function lockIdentity(
  tx: Queryable,
  { workspaceId, identity }: { workspaceId: string; identity: string },
): Promise<IdentityRow | undefined> {
  const text = `select id, external_id, meta
                  from identities
                 where workspace_id = $1 and (id = $2 or external_id = $2) and deleted_at is null
                 order by (id = $2) desc
                 limit 1
                   for no key update`;
  const { rows } = await tx.query<IdentityRow>({ name: "lock-identity", text, values: [workspaceId, identity] });
  return rows[0];
}

export interface IdentityPage {
  readonly workspaceId: string;
  /** First id of the page. The empty string precedes every id. */
  readonly cursor: string;
  readonly rowsMax: number;
}

/** Returns the ids of live identities, sorted. */
export async function listIdentityIds(
  db: Queryable,
  { workspaceId, cursor, rowsMax }: IdentityPage,
): Promise<string[]> {
  const text = `select id
                  from identities
                 where workspace_id = $1 and id >= $2 and deleted_at is null
                 order by id
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax];
  const { rows } = await db.query<{ id: string }>({ name: "list-identity-ids", text, values });
  return rows.map(({ id }) => id);
}

/** Returns the number of live identities of the workspace. */
export async function countIdentities(db: Queryable, workspaceId: string): Promise<number> {
  const text = "select count(*)::int as count from identities where workspace_id = $1 and deleted_at is null";
  const { rows } = await db.query<{ count: number }>({ name: "count-identities", text, values: [workspaceId] });
  return rows[0]?.count ?? 0;
}

/**
 * Returns identities whose id or external id contains `search`, ignoring case. The statement is not prepared, so that Postgres plans it for
 * each search text: the trigram index suits a rare one, a scan in id order a common one.
 */
export async function searchIdentityIds(
  db: Queryable,
  { workspaceId, cursor, rowsMax, search }: IdentityPage & { readonly search: string },
): Promise<string[]> {
  const text = `select id
                  from identities
                 where workspace_id = $1 and id >= $2 and deleted_at is null
                   and (id ilike $4 or external_id ilike $4)
                 order by id
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search)];
  const { rows } = await db.query<{ id: string }>({ text, values });
  return rows.map(({ id }) => id);
}

/**
 * Returns the live identities with the given ids, in the order of the ids. Returns the first one, and as many more as fit into `bytesMax`
 * together with their limits.
 */
export async function listIdentitiesThatFit(
  db: Queryable,
  { workspaceId, identityIds, bytesMax }: { workspaceId: string; identityIds: readonly string[]; bytesMax: number },
): Promise<(IdentityRow & Positioned)[]> {
  const bytesOfNext = `select coalesce(sum(coalesce(octet_length(i.meta::text), 0)
                                     + 128 * (select count(*) from ratelimits l where l.identity_id = i.id)), 0)::bigint
                   from identities i
                  where i.workspace_id = $1 and i.id = next.id`;
  const text = `${fitting(bytesOfNext)}
                select f.place, i.id, i.external_id, i.meta
                  from fitting f
                  join identities i on i.workspace_id = $1 and i.id = f.id and i.deleted_at is null
                 where f.place = 1 or f.bytes <= $3
                 order by f.place`;
  const values = [workspaceId, identityIds, bytesMax];
  const { rows } = await db.query<IdentityRow & Positioned>({ name: "list-identities-that-fit", text, values });
  return rows;
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

/** Inserts an identity. Returns false, and inserts nothing, if a live identity already has the external id. */
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

export async function updateIdentity(
  tx: Queryable,
  identity: { workspaceId: string; identityId: string; meta: Json | null; updatedAt: number },
): Promise<void> {
  const text = "update identities set meta = $3::jsonb, updated_at = $4 where workspace_id = $1 and id = $2";
  const { workspaceId, identityId, meta, updatedAt } = identity;
  await tx.query({
    name: "update-identity",
    text,
    values: [workspaceId, identityId, meta === null ? null : JSON.stringify(meta), updatedAt],
  });
}

/**
 * Marks the identity as deleted. Keys that still refer to it are treated as keys without an identity. Its limits are in separate rows,
 * which this function does not delete.
 */
export async function deleteIdentity(
  tx: Queryable,
  { workspaceId, identityId, deletedAt }: { workspaceId: string; identityId: string; deletedAt: number },
): Promise<void> {
  const text = "update identities set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-identity", text, values: [workspaceId, identityId, deletedAt] });
}
