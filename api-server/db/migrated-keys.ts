import type { Queryable } from "../../postgres/queryable.ts";

/* Statements for the first verification of a key that was imported with another system's hash. */

/** An imported key that is being verified. It is stored either under its own hash or still under the imported hash. */
export interface MigratedKeyRow {
  readonly id: string;
  readonly api_id: string;
  /** Whether the key is already stored under its own hash. */
  readonly is_rewritten: boolean;
}

/**
 * Returns a live key of a live API in this workspace. Uses a single statement, so that a concurrent rewrite is visible either completely or
 * not at all.
 */
export async function findMigratedKey(
  db: Queryable,
  {
    workspaceId,
    migrationId,
    hash,
    pendingHash,
  }: { workspaceId: string; migrationId: string; hash: string; pendingHash: string },
): Promise<MigratedKeyRow | undefined> {
  const text = `select k.id, k.api_id, k.hash = $3 as is_rewritten
                  from keys k
                  join apis a on a.id = k.api_id and a.deleted_at is null
                  left join migrations m on m.id = k.pending_migration_id and m.workspace_id = $1
                 where k.workspace_id = $1 and k.hash in ($3, $4) and k.deleted_at is null
                   and (k.hash = $3 or (m.id = $2 and m.algorithm = 'prefixed'))
                 order by is_rewritten desc
                 limit 1`;
  const { rows } = await db.query<MigratedKeyRow>({
    name: "find-migrated-key",
    text,
    values: [workspaceId, migrationId, hash, pendingHash],
  });
  return rows[0];
}

/**
 * Stores a key under its own hash, unless that has already been done. Throws a violation of `keys_hash_key` if another key has the hash.
 */
export async function rewriteMigratedKey(
  tx: Queryable,
  {
    workspaceId,
    keyId,
    migrationId,
    hash,
    start,
  }: { workspaceId: string; keyId: string; migrationId: string; hash: string; start: string },
): Promise<void> {
  const text = `update keys
                   set hash = $4, start = $5, pending_migration_id = null
                 where workspace_id = $1 and id = $2 and pending_migration_id = $3`;
  await tx.query({ name: "rewrite-migrated-key", text, values: [workspaceId, keyId, migrationId, hash, start] });
}
