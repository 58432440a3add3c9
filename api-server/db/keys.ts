import type { Queryable } from "../../postgres/queryable.ts";
import type { Json } from "./identities.ts";
import { fitting, type Positioned } from "./pages.ts";
import type { RatelimitRow } from "./ratelimits.ts";

/*
 * Statements that read keys. A key is live if neither the key nor its API is deleted. (The workspace is never deleted here, because a
 * deleted workspace has no valid root key.)
 *
 * After an import, Postgres has no statistics of a workspace's keys for a minute or more. Without statistics, Postgres assumes very few
 * keys, and reads all of them by an index that starts with the workspace. So lists look up keys only by id, API or identity, in a subquery
 * that Postgres does not merge with the rest (`offset 0`, or a limit), and compare the workspace outside of the subquery.
 */

export interface KeyRef {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** A live key with its scalar parts: its identity, if the identity is live, and its stored credits. */
export interface KeyRow {
  readonly id: string;
  readonly api_id: string;
  readonly key_encryption: boolean;
  readonly start: string;
  readonly name: string | null;
  readonly meta: Json | null;
  readonly enabled: boolean;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  /** Owner id that v1 stored. It remains when the identity is deleted. */
  readonly owner_id: string | null;
  readonly environment: string | null;
  /** Time of the last refill; `null` if the key has not been refilled since this column was added. */
  readonly last_refill_at: number | null;
  readonly manager: string | null;
  readonly created_at: number;
  readonly updated_at: number | null;
  /** Stored id of the identity, which may be deleted. */
  readonly identity_id: string | null;
  /** External id of the identity; `null` if there is none or it is deleted. */
  readonly external_id: string | null;
  readonly identity_meta: Json | null;
  /** Remaining credits; `null` if unlimited. The actual number may be smaller, because spending is written with a delay. */
  readonly remaining: number | null;
  readonly refill_amount: number | null;
  readonly refill_day: number | null;
}

/** Columns of a `KeyRow`, for statements that contain `KEY_JOINS`. */
export const KEY_COLUMNS = `k.id, k.api_id, a.key_encryption, k.start, k.name, k.meta, k.enabled, k.expires_at, k.last_used_at,
                       k.owner_id, k.environment, k.last_refill_at, k.manager, k.created_at, k.updated_at, k.identity_id, i.external_id,
                       i.meta as identity_meta, c.granted - c.spent as remaining, c.refill_amount, c.refill_day`;
const KEY_JOINS = `join apis a on a.id = k.api_id and a.deleted_at is null
                  left join identities i on i.id = k.identity_id and i.deleted_at is null
                  left join key_credits c on c.key_id = k.id`;

export async function findKey(db: Queryable, { workspaceId, keyId }: KeyRef): Promise<KeyRow | undefined> {
  const text = `select ${KEY_COLUMNS}
                  from keys k
                  ${KEY_JOINS}
                 where k.workspace_id = $1 and k.id = $2 and k.deleted_at is null`;
  const { rows } = await db.query<KeyRow>({ name: "find-key", text, values: [workspaceId, keyId] });
  return rows[0];
}

/** Like `findKey`, but finds the live key by the hash of its string. */
export async function findKeyByHash(
  db: Queryable,
  { workspaceId, hash }: { workspaceId: string; hash: string },
): Promise<KeyRow | undefined> {
  const text = `select ${KEY_COLUMNS}
                  from keys k
                  ${KEY_JOINS}
                 where k.workspace_id = $1 and k.hash = $2 and k.deleted_at is null`;
  const { rows } = await db.query<KeyRow>({ name: "find-key-by-hash", text, values: [workspaceId, hash] });
  return rows[0];
}

/** Returns the workspace of a live key, given only the key's hash. Finds disabled workspaces, but not deleted ones. */
export async function findKeyHome(
  db: Queryable,
  { hash }: { hash: string },
): Promise<{ readonly workspace_id: string; readonly quota_per_minute: number | null } | undefined> {
  const text = `select k.workspace_id, w.quota_per_minute
                  from keys k
                  join workspaces w on w.id = k.workspace_id
                 where k.hash = $1 and k.deleted_at is null and w.deleted_at is null`;
  const { rows } = await db.query<{ workspace_id: string; quota_per_minute: number | null }>({
    name: "find-key-home",
    text,
    values: [hash],
  });
  return rows[0];
}

/** Like `findKey`, but also locks the key: no other transaction can change its row until the current transaction ends. */
export async function lockKey(tx: Queryable, { workspaceId, keyId }: KeyRef): Promise<KeyRow | undefined> {
  const text = `select ${KEY_COLUMNS}
                  from keys k
                  ${KEY_JOINS}
                 where k.workspace_id = $1 and k.id = $2 and k.deleted_at is null
                   for update of k`;
  const { rows } = await tx.query<KeyRow>({ name: "lock-key", text, values: [workspaceId, keyId] });
  return rows[0];
}

export interface KeyPage {
  readonly workspaceId: string;
  readonly apiId: string;
  /** Lower bound (inclusive) for the ids of the page. The empty string precedes every id. */
  readonly cursor: string;
  readonly rowsMax: number;
}

/** Returns the ids of an API's live keys, sorted; empty for an API of another workspace. */
export async function listKeyIds(db: Queryable, { workspaceId, apiId, cursor, rowsMax }: KeyPage): Promise<string[]> {
  const text = `select k.id
                  from apis a
                 cross join lateral (select k.id
                                       from keys k
                                      where k.api_id = a.id and k.id >= $3 and k.deleted_at is null
                                      order by k.id
                                      limit $4) as k
                 where a.workspace_id = $1 and a.id = $2
                 order by k.id`;
  const values = [workspaceId, apiId, cursor, rowsMax];
  const { rows } = await db.query<{ id: string }>({ name: "list-key-ids", text, values });
  return rows.map(({ id }) => id);
}

/**
 * Returns the ids of an identity's live keys in an API. This is a separate statement so that it can use the index by identity, which finds
 * a few keys among a million keys of the API.
 */
export async function listKeyIdsOfIdentity(
  db: Queryable,
  { workspaceId, apiId, cursor, rowsMax, identityId }: KeyPage & { identityId: string },
): Promise<string[]> {
  const text = `select k.id
                  from (select k.id, k.workspace_id, k.api_id, k.deleted_at
                          from keys k
                         where k.identity_id = $5 and k.id >= $3
                         order by k.id
                        offset 0) as k
                 where k.workspace_id = $1 and k.api_id = $2 and k.deleted_at is null
                 order by k.id
                 limit $4`;
  const values = [workspaceId, apiId, cursor, rowsMax, identityId];
  const { rows } = await db.query<{ id: string }>({ name: "list-key-ids-of-identity", text, values });
  return rows.map(({ id }) => id);
}

/**
 * Returns the ids of live keys of an owner, sorted: keys whose v1 owner id matches, and keys of the live identity with this externalId. A
 * separate index finds each set. Without an API, returns keys of all APIs of the workspace.
 */
export async function listKeyIdsOfOwner(
  db: Queryable,
  { workspaceId, apiId, cursor, rowsMax, ownerId }: Omit<KeyPage, "apiId"> & { apiId?: string; ownerId: string },
): Promise<string[]> {
  const text = `with told as (
                  select k.id
                    from keys k
                    join apis a on a.id = k.api_id and a.deleted_at is null
                   where k.workspace_id = $1 and ($2::text is null or k.api_id = $2) and k.owner_id = $5 and k.id >= $3
                     and k.deleted_at is null
                   order by k.id
                   limit $4
                ), linked as (
                  select k.id
                    from identities i
                    join keys k on k.identity_id = i.id
                    join apis a on a.id = k.api_id and a.deleted_at is null
                   where i.workspace_id = $1 and i.external_id = $5 and i.deleted_at is null
                     and ($2::text is null or k.api_id = $2) and k.id >= $3 and k.deleted_at is null
                   order by k.id
                   limit $4
                )
                select o.id
                  from (select t.id from told t union select l.id from linked l) as o
                 order by o.id
                 limit $4`;
  const values = [workspaceId, apiId ?? null, cursor, rowsMax, ownerId];
  const { rows } = await db.query<{ id: string }>({ name: "list-key-ids-of-owner", text, values });
  return rows.map(({ id }) => id);
}

/** Returns the distinct live APIs of the given keys, in no particular order. */
export async function listApisOfKeys(
  db: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<string[]> {
  const text = `select distinct k.api_id
                  from (select k.api_id, k.workspace_id, k.deleted_at
                          from keys k
                         where k.id = any($2)
                        offset 0) as k
                  join apis a on a.id = k.api_id and a.deleted_at is null
                 where k.workspace_id = $1 and k.deleted_at is null`;
  const { rows } = await db.query<{ api_id: string }>({
    name: "list-apis-of-keys",
    text,
    values: [workspaceId, keyIds],
  });
  return rows.map((row) => row.api_id);
}

/**
 * Returns the live keys with the given ids, in the order of the ids. Returns the first key, and as many more as fit into `bytesMax`
 * together with their permissions, roles and limits. `place` is the position of a key in the request, starting at 1.
 */
export async function listKeysThatFit(
  db: Queryable,
  { workspaceId, keyIds, bytesMax }: { workspaceId: string; keyIds: readonly string[]; bytesMax: number },
): Promise<(KeyRow & Positioned)[]> {
  // Estimated size of a key. A slug or a name takes at most 128 bytes, and a limit about as much.
  const bytesOfNext = `select coalesce(sum(coalesce(octet_length(k.meta::text), 0) + coalesce(octet_length(i.meta::text), 0)
                                     + 128 * ((select count(*) from key_permissions kp where kp.key_id = k.id)
                                              + (select count(*) from key_roles kr where kr.key_id = k.id)
                                              + (select count(*)
                                                   from key_roles kr
                                                   join role_permissions rp on rp.role_id = kr.role_id
                                                  where kr.key_id = k.id)
                                              + (select count(*) from ratelimits l where l.key_id = k.id)
                                              + (select count(*) from ratelimits l where l.identity_id = k.identity_id))), 0)::bigint
                   from keys k
                   left join identities i on i.id = k.identity_id
                  where k.workspace_id = $1 and k.id = next.id`;
  const text = `${fitting(bytesOfNext)}
                select f.place, ${KEY_COLUMNS}
                  from fitting f
                 cross join lateral (select k.* from keys k where k.id = f.id offset 0) as k
                  ${KEY_JOINS}
                 where k.workspace_id = $1 and k.deleted_at is null and (f.place = 1 or f.bytes <= $3)
                 order by f.place`;
  const values = [workspaceId, keyIds, bytesMax];
  const { rows } = await db.query<KeyRow & Positioned>({ name: "list-keys-that-fit", text, values });
  return rows;
}

/** Parts of which a key can have many. */
export interface KeyPartsRow {
  readonly key_id: string;
  /** Distinct slugs of the permissions held directly and through roles, in no particular order. */
  readonly permissions: string[];
  readonly roles: string[];
  readonly ratelimits: RatelimitRow[];
  /** Limits of the key's identity; empty unless the identity is live. */
  readonly identity_ratelimits: RatelimitRow[];
}

export async function listKeyParts(
  db: Queryable,
  { workspaceId, keyIds }: { workspaceId: string; keyIds: readonly string[] },
): Promise<KeyPartsRow[]> {
  const text = `select k.id as key_id,
                       array(select p.slug
                               from key_permissions kp
                               join permissions p on p.id = kp.permission_id
                              where kp.key_id = k.id
                              union
                             select p.slug
                               from key_roles kr
                               join role_permissions rp on rp.role_id = kr.role_id
                               join permissions p on p.id = rp.permission_id
                              where kr.key_id = k.id) as permissions,
                       array(select r.name
                               from key_roles kr
                               join roles r on r.id = kr.role_id
                              where kr.key_id = k.id) as roles,
                       (select coalesce(json_agg(json_build_object('id', l.id, 'name', l.name, 'max_count', l.max_count,
                                                                   'duration_ms', l.duration_ms, 'auto_apply', l.auto_apply)
                                                 order by l.name collate "C"), '[]'::json)
                          from ratelimits l
                         where l.key_id = k.id) as ratelimits,
                       (select coalesce(json_agg(json_build_object('id', l.id, 'name', l.name, 'max_count', l.max_count,
                                                                   'duration_ms', l.duration_ms, 'auto_apply', l.auto_apply)
                                                 order by l.name collate "C"), '[]'::json)
                          from ratelimits l
                          join identities i on i.id = l.identity_id and i.deleted_at is null
                         where l.identity_id = k.identity_id) as identity_ratelimits
                  from keys k
                 where k.workspace_id = $1 and k.id = any ($2::text[])`;
  const { rows } = await db.query<KeyPartsRow>({ name: "list-key-parts", text, values: [workspaceId, keyIds] });
  return rows;
}

/** Returns the live keys of a manager, newest first. */
export async function listKeysOfManager(
  db: Queryable,
  { workspaceId, manager, rowsMax }: { workspaceId: string; manager: string; rowsMax: number },
): Promise<KeyRow[]> {
  const text = `select ${KEY_COLUMNS}
                  from keys k
                  ${KEY_JOINS}
                 where k.workspace_id = $1 and k.manager = $2 and k.deleted_at is null
                 order by k.created_at desc, k.id desc
                 limit $3`;
  const values = [workspaceId, manager, rowsMax];
  const { rows } = await db.query<KeyRow>({ name: "list-keys-of-manager", text, values });
  return rows;
}

/** Returns the live key with this manager and name. For keys without a name, `name` is `null`. */
export async function findKeyIdByManager(
  db: Queryable,
  { workspaceId, manager, name }: { workspaceId: string; manager: string; name: string | null },
): Promise<string | undefined> {
  const text = `select id
                  from keys
                 where workspace_id = $1 and manager = $2 and name is not distinct from $3 and deleted_at is null
                 limit 1`;
  const { rows } = await db.query<{ id: string }>({
    name: "find-key-id-by-manager",
    text,
    values: [workspaceId, manager, name],
  });
  return rows[0]?.id;
}

/** Returns the hash of a live key, which identifies its record. */
export async function findKeyHash(db: Queryable, { workspaceId, keyId }: KeyRef): Promise<string | undefined> {
  const text = "select hash from keys where workspace_id = $1 and id = $2 and deleted_at is null";
  const { rows } = await db.query<{ hash: string }>({ name: "find-key-hash", text, values: [workspaceId, keyId] });
  return rows[0]?.hash;
}
