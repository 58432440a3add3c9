import type { Queryable } from "../../postgres/queryable.ts";
import type { ApiRef } from "./apis.ts";

/* Statements on all keys of an API. An API can have a million keys, so each call handles one batch. */

/** Details of a deleted key. */
export interface DeletedKeyRow {
  readonly id: string;
  readonly name: string | null;
}

/** Returns the number of live keys of an API. */
export async function countKeysOfApi(db: Queryable, { workspaceId, apiId }: ApiRef): Promise<number> {
  const text = `select count(*) as n
                  from keys k
                 where k.workspace_id = $1 and k.api_id = $2 and k.deleted_at is null`;
  const { rows } = await db.query<{ n: number }>({ name: "count-keys-of-api", text, values: [workspaceId, apiId] });
  return rows[0]?.n ?? 0;
}

/** Returns the id of one live key of an API; `undefined` if it has none. */
export async function findOneKeyOfApi(db: Queryable, { workspaceId, apiId }: ApiRef): Promise<string | undefined> {
  const text = "select k.id from keys k where k.workspace_id = $1 and k.api_id = $2 and k.deleted_at is null limit 1";
  const { rows } = await db.query<{ id: string }>({ name: "find-one-key-of-api", text, values: [workspaceId, apiId] });
  return rows[0]?.id;
}

/** Returns one live key that a manifest manages; `undefined` if there is none. */
export async function findManagedKeyOfApi(
  db: Queryable,
  { workspaceId, apiId }: ApiRef,
): Promise<{ readonly id: string; readonly manager: string } | undefined> {
  const text = `select k.id, k.manager
                  from keys k
                 where k.workspace_id = $1 and k.api_id = $2 and k.manager is not null and k.deleted_at is null
                 order by k.id
                 limit 1`;
  const { rows } = await db.query<{ id: string; manager: string }>({
    name: "find-managed-key-of-api",
    text,
    values: [workspaceId, apiId],
  });
  return rows[0];
}

/** Returns the ids of an API's live keys with credits, sorted, after `cursor`. */
export async function listLimitedKeyIds(
  db: Queryable,
  { workspaceId, apiId, cursor, max }: ApiRef & { cursor: string; max: number },
): Promise<string[]> {
  const text = `select k.id
                  from keys k
                  join key_credits c on c.key_id = k.id
                 where k.workspace_id = $1 and k.api_id = $2 and k.id > $3 and k.deleted_at is null
                 order by k.id
                 limit $4`;
  const values = [workspaceId, apiId, cursor, max];
  const { rows } = await db.query<{ id: string }>({ name: "list-limited-key-ids", text, values });
  return rows.map(({ id }) => id);
}

/** Live keys of an API without a manager and without credits. Keys with credits are deleted one at a time. */
const UNLIMITED = `select k.id
                     from keys k
                    where k.workspace_id = $1 and k.api_id = $2 and k.deleted_at is null and k.manager is null
                      and not exists (select from key_credits c where c.key_id = k.id)
                    order by k.id
                    limit $3
                      for update of k`;

/** Marks at most `max` unmanaged, unlimited keys of an API as deleted, and returns them. */
export async function deleteSomeKeys(
  tx: Queryable,
  { workspaceId, apiId, max, deletedAt }: ApiRef & { max: number; deletedAt: number },
): Promise<DeletedKeyRow[]> {
  const text = `with chosen as (${UNLIMITED})
                update keys d
                   set deleted_at = $4
                  from chosen
                 where d.workspace_id = $1 and d.id = chosen.id
             returning d.id, d.name`;
  const values = [workspaceId, apiId, max, deletedAt];
  return (await tx.query<DeletedKeyRow>({ name: "delete-some-keys", text, values })).rows;
}

/** Deletes the rows of at most `max` unmanaged, unlimited keys of an API, with all parts of the keys. Returns the keys. */
export async function purgeSomeKeys(
  tx: Queryable,
  { workspaceId, apiId, max }: ApiRef & { max: number },
): Promise<DeletedKeyRow[]> {
  const text = `with chosen as (${UNLIMITED})
                delete from keys d
                 using chosen
                 where d.workspace_id = $1 and d.id = chosen.id
             returning d.id, d.name`;
  return (await tx.query<DeletedKeyRow>({ name: "purge-some-keys", text, values: [workspaceId, apiId, max] })).rows;
}

/** Deletes the rows of at most `max` keys of an API that are already marked as deleted. Returns their number. */
export async function purgeSomeDeletedKeys(
  tx: Queryable,
  { workspaceId, apiId, max }: ApiRef & { max: number },
): Promise<number> {
  const text = `with chosen as (
                  select k.id
                    from keys k
                   where k.workspace_id = $1 and k.api_id = $2 and k.deleted_at is not null
                   order by k.id
                   limit $3
                     for update of k
                )
                delete from keys d
                 using chosen
                 where d.workspace_id = $1 and d.id = chosen.id`;
  const { rowCount } = await tx.query({ name: "purge-some-deleted-keys", text, values: [workspaceId, apiId, max] });
  return rowCount ?? 0;
}
