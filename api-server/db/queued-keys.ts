import type { Queryable } from "../../postgres/queryable.ts";
import type { Json } from "./identities.ts";
import type { Sealed } from "./key-secrets.ts";

/* Keys that wait to be created. The initial migration describes their rows. */

export interface NewQueuedKey {
  readonly keyId: string;
  readonly hash: string;
  readonly definition: Json;
  /** Encrypted string of the key; `undefined` if the key will not be recoverable. */
  readonly sealed: Sealed | undefined;
}

export interface NewQueuedKeys {
  readonly workspaceId: string;
  readonly apiId: string;
  readonly migrationId: string;
  readonly requestedBy: Json;
  readonly enqueuedAt: number;
  readonly keys: readonly NewQueuedKey[];
}

/**
 * Inserts all given keys, or none if the workspace would then have more than `waitingMax` queued keys. Concurrent calls do not see each
 * other's keys, so together they may exceed that limit.
 * @returns whether the keys were inserted.
 */
export async function insertQueuedKeys(
  db: Queryable,
  { workspaceId, apiId, migrationId, requestedBy, enqueuedAt, keys }: NewQueuedKeys,
  { waitingMax }: { readonly waitingMax: number },
): Promise<boolean> {
  const text = `with waiting as (
                  select count(*) as keys
                    from (select from queued_keys q where q.workspace_id = $1 limit $6) as some_of_them
                )
                insert into queued_keys (key_id, workspace_id, api_id, migration_id, position, hash, definition,
                                         encryption_key_id, nonce, ciphertext, requested_by, enqueued_at, due_at)
                select k.key_id, $1, $2, $3, k.ordinal - 1, k.hash, k.definition::jsonb, k.encryption_key_id, k.nonce, k.ciphertext,
                       $4::jsonb, $5::bigint, $5::bigint
                  from unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::bytea[], $12::bytea[]) with ordinality
                       as k (key_id, hash, definition, encryption_key_id, nonce, ciphertext, ordinal)
                 where (select w.keys from waiting w) + cardinality($7::text[]) <= $6::bigint`;
  const { rowCount } = await db.query({
    name: "insert-queued-keys",
    text,
    values: [
      workspaceId,
      apiId,
      migrationId,
      JSON.stringify(requestedBy),
      enqueuedAt,
      waitingMax,
      keys.map(({ keyId }) => keyId),
      keys.map(({ hash }) => hash),
      keys.map(({ definition }) => JSON.stringify(definition)),
      keys.map(({ sealed }) => sealed?.encryptionKeyId ?? null),
      keys.map(({ sealed }) => sealed?.nonce ?? null),
      keys.map(({ sealed }) => sealed?.ciphertext ?? null),
    ],
  });
  return rowCount === keys.length;
}

export interface QueuedKeyRow {
  readonly key_id: string;
  readonly workspace_id: string;
  readonly api_id: string;
  readonly migration_id: string;
  /** Index of the key in the call, from 0. */
  readonly position: number;
  readonly hash: string;
  readonly definition: unknown;
  readonly encryption_key_id: string | null;
  readonly nonce: Uint8Array | null;
  readonly ciphertext: Uint8Array | null;
  readonly requested_by: unknown;
  readonly failures: number;
  readonly is_workspace_live: boolean;
}

/** Returns the workspaces that have a due key, sorted by id. Reads only one row per workspace, however many keys are queued. */
export async function listWorkspacesWithDueKeys(db: Queryable, { nowMs }: { nowMs: number }): Promise<string[]> {
  const text = `with recursive waiting as (
                  (select q.workspace_id from queued_keys q order by q.workspace_id limit 1)
                   union all
                  select (select q.workspace_id
                            from queued_keys q
                           where q.workspace_id > w.workspace_id
                           order by q.workspace_id
                           limit 1)
                    from waiting w
                   where w.workspace_id is not null
                )
                select w.workspace_id
                  from waiting w
                 where exists (select from queued_keys q where q.workspace_id = w.workspace_id and q.due_at <= $1)
                 order by w.workspace_id`;
  const { rows } = await db.query<{ workspace_id: string }>({
    name: "list-workspaces-with-due-keys",
    text,
    values: [nowMs],
  });
  return rows.map(({ workspace_id }) => workspace_id);
}

/**
 * Returns at most `max` due keys of a workspace, those due longest first, and locks them until the transaction ends. Skips keys that
 * another transaction has locked.
 */
export async function lockDueKeys(
  tx: Queryable,
  { workspaceId, nowMs, max }: { workspaceId: string; nowMs: number; max: number },
): Promise<QueuedKeyRow[]> {
  const text = `select q.key_id, q.workspace_id, q.api_id, q.migration_id, q.position, q.hash, q.definition,
                       q.encryption_key_id, q.nonce, q.ciphertext, q.requested_by, q.failures, w.deleted_at is null as is_workspace_live
                  from queued_keys q
                  join workspaces w on w.id = q.workspace_id
                 where q.workspace_id = $1 and q.due_at <= $2
                 order by q.due_at, q.position, q.key_id
                 limit $3
                   for update of q skip locked`;
  const { rows } = await tx.query<QueuedKeyRow>({ name: "lock-due-keys", text, values: [workspaceId, nowMs, max] });
  return rows;
}

/** Deletes queued keys whose rows this transaction has locked. */
export async function deleteLockedKeys(
  tx: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<void> {
  const text = "delete from queued_keys where workspace_id = $1 and key_id = any($2)";
  await tx.query({ name: "delete-locked-keys", text, values: [workspaceId, keyIds] });
}

/** A queued key in the state in which it was read. Another process may have tried to create it since then. */
interface QueuedKeyRef {
  readonly workspaceId: string;
  readonly keyId: string;
  readonly failures: number;
}

/** Deletes a queued key. Returns false if its row has changed since it was read. */
export async function deleteQueuedKey(db: Queryable, { workspaceId, keyId, failures }: QueuedKeyRef): Promise<boolean> {
  const text = "delete from queued_keys where workspace_id = $1 and key_id = $2 and failures = $3";
  const { rowCount } = await db.query({ name: "delete-queued-key", text, values: [workspaceId, keyId, failures] });
  return rowCount === 1;
}

/**
 * Increments the failure count of a queued key, and postpones its creation. Returns false, and changes nothing, if its row has changed
 * since it was read.
 */
export async function postponeQueuedKey(
  db: Queryable,
  { workspaceId, keyId, failures, dueAt }: QueuedKeyRef & { readonly dueAt: number },
): Promise<boolean> {
  const text = `update queued_keys
                   set failures = failures + 1, due_at = $4
                 where workspace_id = $1 and key_id = $2 and failures = $3`;
  const values = [workspaceId, keyId, failures, dueAt];
  const { rowCount } = await db.query({ name: "postpone-queued-key", text, values });
  return rowCount === 1;
}

/**
 * Returns the number of queued keys in all workspaces, up to `max`, and the time at which the oldest one was queued (Unix ms, `null` if no
 * key is queued).
 */
export async function measureQueuedKeys(
  db: Queryable,
  { max }: { readonly max: number },
): Promise<{ readonly waiting: number; readonly oldest: number | null }> {
  const text = `select (select count(*) from (select from queued_keys limit $1) as some_of_them) as waiting,
                       (select min(q.enqueued_at) from queued_keys q) as oldest`;
  const { rows } = await db.query<{ waiting: number; oldest: number | null }>({
    name: "measure-queued-keys",
    text,
    values: [max],
  });
  return rows[0] ?? { waiting: 0, oldest: null };
}
