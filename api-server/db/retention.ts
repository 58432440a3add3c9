import type { Batch, Queryable, RemoveBatch } from "../../postgres/queryable.ts";

/*
 * Removes data after its retention time. Each statement removes one batch of one workspace, oldest first, and returns the number of removed
 * rows. It skips rows that another transaction has locked.
 *
 * Rows marked as deleted are removed after everything that refers to them. The removal fires row triggers that create outbox entries, so
 * the relay writes each tombstone once more, which has no effect on readers.
 */

/** Removes old audit events by a backward scan of the index `audit_log_by_time`. */
export const removeAudit: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from audit_log
      where id in (select a.id
                     from audit_log a
                    where a.workspace_id = $1 and a.time < $2
                    order by a.time
                    limit $3
                      for update skip locked)`,
  );

export const removeDeletedOverrides: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from ratelimit_overrides
      where id in (select o.id
                     from ratelimit_overrides o
                    where o.workspace_id = $1 and o.deleted_at < $2
                    order by o.deleted_at
                    limit $3
                      for update skip locked)`,
  );

export const removeDeletedPolicies: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from policies
      where id in (select p.id
                     from policies p
                    where p.workspace_id = $1 and p.deleted_at < $2
                    order by p.deleted_at
                    limit $3
                      for update skip locked)`,
  );

/** Removes deleted keys with all their parts: permissions, roles, limits, credits and encrypted strings. */
export const removeDeletedKeys: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from keys
      where id in (select k.id
                     from keys k
                    where k.workspace_id = $1 and k.deleted_at < $2
                    order by k.deleted_at
                    limit $3
                      for update skip locked)`,
  );

/**
 * Removes deleted namespaces. Keeps a namespace that an active policy refers to, so that requests under this policy still get the response
 * for a deleted namespace, not the one for an unknown namespace.
 */
export const removeDeletedNamespaces: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from ratelimit_namespaces
      where id in (select n.id
                     from ratelimit_namespaces n
                    where n.workspace_id = $1 and n.deleted_at < $2
                      and not exists (select from ratelimit_overrides o where o.namespace_id = n.id)
                      and not exists (select from policies p
                                       where p.workspace_id = $1 and p.deleted_at is null
                                         and position(n.id in p.policy::text) > 0)
                    order by n.deleted_at
                    limit $3
                      for update of n skip locked)`,
  );

export const removeDeletedIdentities: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from identities
      where id in (select i.id
                     from identities i
                    where i.workspace_id = $1 and i.deleted_at < $2
                      and not exists (select from keys k where k.identity_id = i.id)
                    order by i.deleted_at
                    limit $3
                      for update of i skip locked)`,
  );

/** Removes deleted APIs, except those that keys still refer to. Such keys are reported as deleted, which requires the API's record. */
export const removeDeletedApis: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from apis
      where id in (select a.id
                     from apis a
                    where a.workspace_id = $1 and a.deleted_at < $2
                      and not exists (select from keys k where k.api_id = a.id)
                      and not exists (select from policies p where p.api_id = a.id)
                    order by a.deleted_at
                    limit $3
                      for update of a skip locked)`,
  );

/** Removes the usage of root keys that were revoked before a time, and the usage of permissions that root keys no longer hold. */
export const removeRootKeyUsage: RemoveBatch = (db, batch) =>
  remove(
    db,
    batch,
    `delete from root_key_usage
      where (root_key_id, tuple) in (select u.root_key_id, u.tuple
                                       from root_key_usage u
                                       join root_keys r on r.id = u.root_key_id
                                      where u.workspace_id = $1
                                        and (r.deleted_at < $2
                                             or (u.tuple <> '' and u.tuple <> all (r.permissions)
                                                 and u.last_used_on < to_timestamp($2 / 1000.0)::date))
                                      limit $3
                                        for update of u skip locked)`,
  );

async function remove(db: Queryable, { workspaceId, beforeMs, rowsMax }: Batch, text: string): Promise<number> {
  const { rowCount } = await db.query({ text, values: [workspaceId, beforeMs, rowsMax] });
  return rowCount ?? 0;
}
