import type { Queryable } from "../../postgres/queryable.ts";

export interface RatelimitRow {
  readonly id: string;
  readonly name: string;
  readonly max_count: number;
  readonly duration_ms: number;
  readonly auto_apply: boolean;
}

export interface NewRatelimit {
  readonly id: string;
  readonly name: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly autoApply: boolean;
}

/** Returns the limits of an identity, sorted by name. */
export async function listRatelimitsOfIdentity(
  db: Queryable,
  { workspaceId, identityId }: { workspaceId: string; identityId: string },
): Promise<RatelimitRow[]> {
  const text = `select id, name, max_count, duration_ms, auto_apply
                  from ratelimits
                 where workspace_id = $1 and identity_id = $2
                 order by name collate "C"`;
  const { rows } = await db.query<RatelimitRow>({
    name: "list-ratelimits-of-identity",
    text,
    values: [workspaceId, identityId],
  });
  return rows;
}

/** Returns the limits of identities, sorted by name within each identity. */
export async function listRatelimitsOfIdentities(
  db: Queryable,
  { workspaceId, identityIds }: { workspaceId: string; identityIds: readonly string[] },
): Promise<(RatelimitRow & { readonly identity_id: string })[]> {
  const text = `select identity_id, id, name, max_count, duration_ms, auto_apply
                  from ratelimits
                 where workspace_id = $1 and identity_id = any ($2::text[])
                 order by identity_id, name collate "C"`;
  const { rows } = await db.query<RatelimitRow & { identity_id: string }>({
    name: "list-ratelimits-of-identities",
    text,
    values: [workspaceId, identityIds],
  });
  return rows;
}

export async function insertIdentityRatelimits(
  tx: Queryable,
  owner: { workspaceId: string; identityId: string; createdAt: number },
  ratelimits: readonly NewRatelimit[],
): Promise<void> {
  const text = `insert into ratelimits (id, workspace_id, identity_id, name, max_count, duration_ms, auto_apply, created_at)
                select r.id, $1, $2, r.name, r.max_count, r.duration_ms, r.auto_apply, $3
                  from unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::boolean[])
                       as r (id, name, max_count, duration_ms, auto_apply)`;
  const { workspaceId, identityId, createdAt } = owner;
  await tx.query({
    name: "insert-identity-ratelimits",
    text,
    values: [workspaceId, identityId, createdAt, ...ratelimitColumns(ratelimits)],
  });
}

/** Replaces the limits of an identity by name: a limit with an existing name keeps its id. */
export async function replaceIdentityRatelimits(
  tx: Queryable,
  owner: { workspaceId: string; identityId: string; createdAt: number },
  ratelimits: readonly NewRatelimit[],
): Promise<void> {
  const text = `with wanted as (
                  select r.id, r.name, r.max_count, r.duration_ms, r.auto_apply
                    from unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::boolean[])
                         as r (id, name, max_count, duration_ms, auto_apply)
                ), removed as (
                  delete from ratelimits
                   where workspace_id = $1 and identity_id = $2 and name not in (select name from wanted)
                )
                insert into ratelimits as r (id, workspace_id, identity_id, name, max_count, duration_ms, auto_apply,
                                             created_at)
                select w.id, $1, $2, w.name, w.max_count, w.duration_ms, w.auto_apply, $3
                  from wanted w
                on conflict (identity_id, name) where identity_id is not null do update
                   set max_count = excluded.max_count, duration_ms = excluded.duration_ms, auto_apply = excluded.auto_apply
                 where (r.max_count, r.duration_ms, r.auto_apply)
                       is distinct from (excluded.max_count, excluded.duration_ms, excluded.auto_apply)`;
  const { workspaceId, identityId, createdAt } = owner;
  await tx.query({
    name: "replace-identity-ratelimits",
    text,
    values: [workspaceId, identityId, createdAt, ...ratelimitColumns(ratelimits)],
  });
}

/** Replaces the limits of a key by name: a limit with an existing name keeps its id, and therefore its counter. */
export async function replaceKeyRatelimits(
  tx: Queryable,
  owner: { workspaceId: string; keyId: string; createdAt: number },
  ratelimits: readonly NewRatelimit[],
): Promise<void> {
  const text = `with wanted as (
                  select r.id, r.name, r.max_count, r.duration_ms, r.auto_apply
                    from unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::boolean[])
                         as r (id, name, max_count, duration_ms, auto_apply)
                ), removed as (
                  delete from ratelimits
                   where workspace_id = $1 and key_id = $2 and name not in (select name from wanted)
                )
                insert into ratelimits as r (id, workspace_id, key_id, name, max_count, duration_ms, auto_apply, created_at)
                select w.id, $1, $2, w.name, w.max_count, w.duration_ms, w.auto_apply, $3
                  from wanted w
                on conflict (key_id, name) where key_id is not null do update
                   set max_count = excluded.max_count, duration_ms = excluded.duration_ms, auto_apply = excluded.auto_apply
                 where (r.max_count, r.duration_ms, r.auto_apply)
                       is distinct from (excluded.max_count, excluded.duration_ms, excluded.auto_apply)`;
  const { workspaceId, keyId, createdAt } = owner;
  await tx.query({
    name: "replace-key-ratelimits",
    text,
    values: [workspaceId, keyId, createdAt, ...ratelimitColumns(ratelimits)],
  });
}

/** Returns the limits as one array per column, as `unnest` requires. */
export const ratelimitColumns = (ratelimits: readonly NewRatelimit[]) => [
  ratelimits.map(({ id }) => id),
  ratelimits.map(({ name }) => name),
  ratelimits.map(({ limit }) => limit),
  ratelimits.map(({ durationMs }) => durationMs),
  ratelimits.map(({ autoApply }) => autoApply),
];
