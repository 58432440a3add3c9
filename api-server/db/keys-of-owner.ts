import type { Queryable } from "../../postgres/queryable.ts";

/* Statements on all keys of an owner. An owner can have very many keys, so each call handles one batch. */

export interface OwnerRef {
  readonly workspaceId: string;
  /** API of the keys; `undefined` for all APIs. */
  readonly apiId: string | undefined;
  readonly externalId: string;
}

/**
 * Distinct live keys of an owner: keys whose v1 owner id matches, and keys of the live identity with this external id. A separate index
 * finds each of these two sets.
 */
const OWNED = `select t.id, t.api_id, t.enabled, t.manager
                 from keys t
                 join apis a on a.id = t.api_id and a.deleted_at is null
                where t.workspace_id = $1 and ($2::text is null or t.api_id = $2) and t.owner_id = $3 and t.deleted_at is null
                union
               select l.id, l.api_id, l.enabled, l.manager
                 from identities i
                 join keys l on l.identity_id = i.id
                 join apis a on a.id = l.api_id and a.deleted_at is null
                where i.workspace_id = $1 and i.external_id = $3 and i.deleted_at is null
                  and ($2::text is null or l.api_id = $2) and l.deleted_at is null`;

/** Keys of an owner in one API. */
export interface OwnedKeysRow {
  readonly api_id: string;
  /** Number of unmanaged keys that are not yet in the desired state, enabled or disabled. */
  readonly to_change: number;
  /** Number of unmanaged keys that are already in the desired state. */
  readonly unchanged: number;
  readonly managed: number;
}

/** Counts an owner's keys per API. The result is sorted by API id. */
export async function countKeysOfOwner(
  db: Queryable,
  { workspaceId, apiId, externalId, enabled }: OwnerRef & { readonly enabled: boolean },
): Promise<OwnedKeysRow[]> {
  const text = `with owned as (${OWNED})
                select o.api_id,
                       count(*) filter (where o.manager is null and o.enabled <> $4) as to_change,
                       count(*) filter (where o.manager is null and o.enabled = $4) as unchanged,
                       count(*) filter (where o.manager is not null) as managed
                  from owned o
                 group by o.api_id
                 order by o.api_id`;
  const values = [workspaceId, apiId ?? null, externalId, enabled];
  return (await db.query<OwnedKeysRow>({ text, values })).rows;
}

/** Returns some of an owner's live keys that are managed by a manifest, sorted by id. */
export async function listManagedKeysOfOwner(
  db: Queryable,
  { workspaceId, apiId, externalId, rowsMax }: OwnerRef & { readonly rowsMax: number },
): Promise<{ readonly id: string; readonly manager: string }[]> {
  const text = `with owned as (${OWNED})
                select o.id, o.manager
                  from owned o
                 where o.manager is not null
                 order by o.id
                 limit $4`;
  const values = [workspaceId, apiId ?? null, externalId, rowsMax];
  return (await db.query<{ id: string; manager: string }>({ text, values })).rows;
}

/**
 * Enables or disables at most `max` unmanaged keys of an owner in the given APIs, skipping keys that are already in that state. Returns the
 * changed keys. Rows are locked in id order, so that two concurrent calls do not deadlock.
 */
export async function enableSomeKeysOfOwner(
  tx: Queryable,
  {
    workspaceId,
    externalId,
    apiIds,
    enabled,
    updatedAt,
    max,
  }: Omit<OwnerRef, "apiId"> & {
    readonly apiIds: readonly string[];
    readonly enabled: boolean;
    readonly updatedAt: number;
    readonly max: number;
  },
): Promise<{ readonly id: string; readonly api_id: string; readonly name: string | null }[]> {
  // `limit` is applied before the rows are locked, because Postgres cannot lock the rows of a union. Rows that another call has changed in
  // the meantime are filtered out after locking.
  const text = `with owned as (${OWNED}),
                     portion as materialized (select o.id
                                             from owned o
                                            where o.api_id = any ($4::text[]) and o.manager is null and o.enabled <> $5
                                            order by o.id
                                            limit $7),
                     chosen as (select k.id
                                  from portion s
                                  join keys k on k.id = s.id
                                 where k.workspace_id = $1 and k.deleted_at is null and k.manager is null and k.enabled <> $5
                                 order by k.id
                                   for update of k)
                update keys u
                   set enabled = $5, updated_at = $6
                  from chosen
                 where u.workspace_id = $1 and u.id = chosen.id
             returning u.id, u.api_id, u.name`;
  const values = [workspaceId, null, externalId, apiIds, enabled, updatedAt, max];
  return (await tx.query<{ id: string; api_id: string; name: string | null }>({ text, values })).rows;
}
