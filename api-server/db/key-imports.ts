import type { Queryable } from "../../postgres/queryable.ts";
import type { Json } from "./identities.ts";
import { type NewRatelimit, ratelimitColumns } from "./ratelimits.ts";

/* Statements that import keys. Each handles up to a thousand keys, and corresponds to a statement for one key in key-changes.ts. */

/**
 * Returns the given hashes that already belong to a key. Deleted keys and keys of other workspaces count too, because a hash can exist only
 * once in the database.
 */
export async function listHashes(db: Queryable, { hashes }: { hashes: readonly string[] }): Promise<string[]> {
  const text = "select hash from keys where hash = any ($1::text[])";
  const { rows } = await db.query<{ hash: string }>({ name: "list-known-hashes", text, values: [hashes] });
  return rows.map(({ hash }) => hash);
}

export interface IdentityIdRow {
  readonly id: string;
  readonly external_id: string;
}

/** Returns the live identities with these external ids. */
export async function listIdentityIdsByExternalId(
  db: Queryable,
  { workspaceId, externalIds }: { workspaceId: string; externalIds: readonly string[] },
): Promise<IdentityIdRow[]> {
  const text = `select id, external_id
                  from identities
                 where workspace_id = $1 and external_id = any ($2::text[]) and deleted_at is null`;
  const { rows } = await db.query<IdentityIdRow>({
    name: "list-identity-ids-by-external-id",
    text,
    values: [workspaceId, externalIds],
  });
  return rows;
}

/**
 * Inserts identities, except those whose external id a live identity already has. Returns the inserted identities. Inserts in the given
 * order: callers that pass the same ids in the same order cannot deadlock.
 */
export async function insertIdentities(
  tx: Queryable,
  {
    workspaceId,
    createdAt,
    identities,
  }: {
    workspaceId: string;
    createdAt: number;
    identities: readonly { readonly id: string; readonly externalId: string }[];
  },
): Promise<IdentityIdRow[]> {
  const text = `insert into identities (id, workspace_id, external_id, created_at)
                select id, $1, external_id, $2
                  from unnest($3::text[], $4::text[]) as wanted (id, external_id)
                 order by external_id
                on conflict (workspace_id, external_id) where deleted_at is null do nothing
                returning id, external_id`;
  const { rows } = await tx.query<IdentityIdRow>({
    name: "insert-identities",
    text,
    values: [workspaceId, createdAt, identities.map(({ id }) => id), identities.map(({ externalId }) => externalId)],
  });
  return rows;
}

/** Inserts roles in the order of their names, to avoid deadlock. Skips roles whose names exist, ignoring case. Returns the new roles. */
export async function insertRolesForNames(
  tx: Queryable,
  {
    workspaceId,
    createdAt,
    roles,
  }: { workspaceId: string; createdAt: number; roles: readonly { readonly id: string; readonly name: string }[] },
): Promise<{ readonly id: string; readonly name: string }[]> {
  const text = `insert into roles (id, workspace_id, name, created_at)
                select id, $1, name, $2
                  from unnest($3::text[], $4::text[]) as wanted (id, name)
                 order by lower(name)
                on conflict do nothing
                returning id, name`;
  const { rows } = await tx.query<{ id: string; name: string }>({
    name: "insert-roles-for-names",
    text,
    values: [workspaceId, createdAt, roles.map(({ id }) => id), roles.map(({ name }) => name)],
  });
  return rows;
}

export interface ImportedKey {
  readonly id: string;
  readonly hash: string;
  readonly name: string | null;
  readonly identityId: string | null;
  readonly meta: Json | null;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  /** Credits of the key; `undefined` if unlimited. */
  readonly credits: { granted: number; refillAmount: number | null; refillDay: number | null } | undefined;
  readonly permissionIds: readonly string[];
  readonly roleIds: readonly string[];
  readonly ratelimits: readonly NewRatelimit[];
}

/**
 * Inserts keys with all their parts, except those whose hash exists. Inserts in hash order, so that two imports of the same keys do not
 * deadlock.
 * @returns the ids of the inserted keys.
 */
export async function insertImportedKeys(
  tx: Queryable,
  {
    workspaceId,
    apiId,
    migrationId,
    createdAt,
    today,
    keys,
  }: {
    workspaceId: string;
    apiId: string;
    migrationId: string;
    createdAt: number;
    /** Current date, YYYY-MM-DD. A refill due today is skipped; the first one is on the next due date. */
    today: string;
    keys: readonly ImportedKey[];
  },
): Promise<string[]> {
  const text = `with new_keys as (
                  insert into keys (id, workspace_id, api_id, hash, start, name, identity_id, meta, enabled, expires_at,
                                    created_at, pending_migration_id)
                  select k.id, $1, $2, k.hash, '', k.name, k.identity_id, k.meta::jsonb, k.enabled, k.expires_at, $4, $3
                    from unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::boolean[], $12::bigint[])
                         as k (id, hash, name, identity_id, meta, enabled, expires_at)
                   order by k.hash collate "C"
                  on conflict (hash) do nothing
                  returning id
                ), new_credits as (
                  insert into key_credits (key_id, workspace_id, granted, refill_amount, refill_day, last_refill_on)
                  select n.id, $1, c.granted, c.refill_amount, c.refill_day, $5::date
                    from unnest($13::text[], $14::bigint[], $15::bigint[], $16::smallint[])
                         as c (key_id, granted, refill_amount, refill_day)
                    join new_keys n on n.id = c.key_id
                ), new_permissions as (
                  insert into key_permissions (key_id, permission_id, workspace_id)
                  select n.id, p.permission_id, $1
                    from unnest($17::text[], $18::text[]) as p (key_id, permission_id)
                    join new_keys n on n.id = p.key_id
                ), new_roles as (
                  insert into key_roles (key_id, role_id, workspace_id)
                  select n.id, r.role_id, $1
                    from unnest($19::text[], $20::text[]) as r (key_id, role_id)
                    join new_keys n on n.id = r.key_id
                ), new_ratelimits as (
                  insert into ratelimits (id, workspace_id, key_id, name, max_count, duration_ms, auto_apply, created_at)
                  select l.id, $1, n.id, l.name, l.max_count, l.duration_ms, l.auto_apply, $4
                    from unnest($21::text[], $22::text[], $23::text[], $24::bigint[], $25::bigint[], $26::boolean[])
                         as l (key_id, id, name, max_count, duration_ms, auto_apply)
                    join new_keys n on n.id = l.key_id
                )
                select id from new_keys`;
  const { rows } = await tx.query<{ id: string }>({
    name: "insert-imported-keys",
    text,
    values: [
      workspaceId,
      apiId,
      migrationId,
      createdAt,
      today,
      keys.map(({ id }) => id),
      keys.map(({ hash }) => hash),
      keys.map(({ name }) => name),
      keys.map(({ identityId }) => identityId),
      keys.map(({ meta }) => (meta === null ? null : JSON.stringify(meta))),
      keys.map(({ enabled }) => enabled),
      keys.map(({ expiresAt }) => expiresAt),
      ...creditColumns(keys),
      ...pairColumns(keys.flatMap(({ id, permissionIds }) => permissionIds.map((part) => [id, part] as const))),
      ...pairColumns(keys.flatMap(({ id, roleIds }) => roleIds.map((part) => [id, part] as const))),
      keys.flatMap(({ id, ratelimits }) => ratelimits.map(() => id)),
      ...ratelimitColumns(keys.flatMap(({ ratelimits }) => ratelimits)),
    ],
  });
  return rows.map(({ id }) => id);
}

function creditColumns(keys: readonly ImportedKey[]) {
  const limited = keys.flatMap(({ id, credits }) => (credits === undefined ? [] : [{ id, ...credits }]));
  return [
    limited.map(({ id }) => id),
    limited.map(({ granted }) => granted),
    limited.map(({ refillAmount }) => refillAmount),
    limited.map(({ refillDay }) => refillDay),
  ];
}

const pairColumns = (pairs: readonly (readonly [string, string])[]) => [
  pairs.map(([keyId]) => keyId),
  pairs.map(([, partId]) => partId),
];
