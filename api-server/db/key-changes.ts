import type { Queryable } from "../../postgres/queryable.ts";
import type { Json } from "./identities.ts";
import type { KeyRef } from "./keys.ts";
import { type NewRatelimit, ratelimitColumns } from "./ratelimits.ts";

/*
 * Statements that change keys.
 */

export interface NewKey {
  readonly id: string;
  readonly workspaceId: string;
  readonly apiId: string;
  /** Hash of the complete key string; the string itself is never stored. */
  readonly hash: string;
  readonly start: string;
  readonly name: string | null;
  readonly identityId: string | null;
  readonly ownerId: string | null;
  readonly environment: string | null;
  readonly meta: Json | null;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly manager: string | null;
  readonly createdAt: number;
  /** Credits of the key; `undefined` if unlimited. Refills due on or before `lastRefillOn` (YYYY-MM-DD) count as done. */
  readonly credits:
    | {
        granted: number;
        refillAmount: number | null;
        refillDay: number | null;
        lastRefillOn: string;
        /** Time of the last refill, Unix ms; `null` if the key is not refilled. */
        lastRefillAt: number | null;
      }
    | undefined;
  readonly permissionIds: readonly string[];
  readonly roleIds: readonly string[];
  readonly ratelimits: readonly NewRatelimit[];
}

/** Inserts the key with all its parts, in one round trip. Postgres checks foreign keys at the end of the statement. */
export async function insertKey(tx: Queryable, key: NewKey): Promise<void> {
  const text = `with new_key as (
                  insert into keys (id, workspace_id, api_id, hash, start, name, identity_id, meta, enabled, expires_at, manager,
                                    created_at, owner_id, environment, last_refill_at)
                  values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $24, $25, $26)
                ), new_credits as (
                  insert into key_credits (key_id, workspace_id, granted, refill_amount, refill_day, last_refill_on)
                  select $1, $2, $13::bigint, $14::bigint, $15::smallint, $16::date
                   where $13::bigint is not null
                ), new_permissions as (
                  insert into key_permissions (key_id, permission_id, workspace_id)
                  select $1, permission_id, $2
                    from unnest($17::text[]) as p (permission_id)
                ), new_roles as (
                  insert into key_roles (key_id, role_id, workspace_id)
                  select $1, role_id, $2
                    from unnest($18::text[]) as r (role_id)
                )
                insert into ratelimits (id, workspace_id, key_id, name, max_count, duration_ms, auto_apply, created_at)
                select l.id, $2, $1, l.name, l.max_count, l.duration_ms, l.auto_apply, $12
                  from unnest($19::text[], $20::text[], $21::bigint[], $22::bigint[], $23::boolean[])
                       as l (id, name, max_count, duration_ms, auto_apply)`;
  const { credits } = key;
  await tx.query({
    name: "insert-key",
    text,
    values: [
      key.id,
      key.workspaceId,
      key.apiId,
      key.hash,
      key.start,
      key.name,
      key.identityId,
      toJson(key.meta),
      key.enabled,
      key.expiresAt,
      key.manager,
      key.createdAt,
      credits?.granted ?? null,
      credits?.refillAmount ?? null,
      credits?.refillDay ?? null,
      credits?.lastRefillOn ?? null,
      key.permissionIds,
      key.roleIds,
      ...ratelimitColumns(key.ratelimits),
      key.ownerId,
      key.environment,
      credits?.lastRefillAt ?? null,
    ],
  });
}

export interface KeySettings {
  readonly name: string | null;
  readonly identityId: string | null;
  readonly ownerId: string | null;
  readonly meta: Json | null;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly lastRefillAt: number | null;
  readonly manager: string | null;
  readonly updatedAt: number;
}

/** Updates a key. Throws a violation of the index `keys_manager` if the manager already has another key with this name. */
export async function updateKey(tx: Queryable, { workspaceId, keyId }: KeyRef, settings: KeySettings): Promise<void> {
  const text = `update keys
                   set name = $3, identity_id = $4, meta = $5::jsonb, enabled = $6, expires_at = $7, manager = $8,
                       updated_at = $9, owner_id = $10, last_refill_at = $11
                 where workspace_id = $1 and id = $2`;
  const { name, identityId, ownerId, meta, enabled, expiresAt, lastRefillAt, manager, updatedAt } = settings;
  await tx.query({
    name: "update-key",
    text,
    values: [
      workspaceId,
      keyId,
      name,
      identityId,
      toJson(meta),
      enabled,
      expiresAt,
      manager,
      updatedAt,
      ownerId,
      lastRefillAt,
    ],
  });
}

/**
 * Updates the row of a key whose credits, links or manager have changed. Throws a violation of the index `keys_manager` in the same case as
 * `updateKey`.
 */
export async function touchKey(
  tx: Queryable,
  { workspaceId, keyId, manager, updatedAt }: KeyRef & Pick<KeySettings, "manager" | "updatedAt">,
): Promise<void> {
  const text = "update keys set manager = $3, updated_at = $4 where workspace_id = $1 and id = $2";
  await tx.query({ name: "touch-key", text, values: [workspaceId, keyId, manager, updatedAt] });
}

/** Sets only the expiry, Unix ms. */
export async function setKeyExpiry(
  tx: Queryable,
  { workspaceId, keyId, expiresAt }: KeyRef & { expiresAt: number },
): Promise<void> {
  const text = "update keys set expires_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "set-key-expiry", text, values: [workspaceId, keyId, expiresAt] });
}

/** Copies the direct permissions and the roles of one key to another. */
export async function copyKeyGrants(
  tx: Queryable,
  { workspaceId, fromKeyId, toKeyId }: { workspaceId: string; fromKeyId: string; toKeyId: string },
): Promise<void> {
  const text = `with copied_permissions as (
                  insert into key_permissions (key_id, permission_id, workspace_id)
                  select $3, permission_id, $1
                    from key_permissions
                   where workspace_id = $1 and key_id = $2
                )
                insert into key_roles (key_id, role_id, workspace_id)
                select $3, role_id, $1
                  from key_roles
                 where workspace_id = $1 and key_id = $2`;
  await tx.query({ name: "copy-key-grants", text, values: [workspaceId, fromKeyId, toKeyId] });
}

/** Marks the key as deleted. Analytics and the audit log keep its data. */
export async function deleteKey(
  tx: Queryable,
  { workspaceId, keyId, deletedAt }: KeyRef & { deletedAt: number },
): Promise<void> {
  const text = "update keys set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-key", text, values: [workspaceId, keyId, deletedAt] });
}

/** Deletes the key's row with all its parts, so that its hash can be used again. */
export async function purgeKey(tx: Queryable, { workspaceId, keyId }: KeyRef): Promise<void> {
  const text = "delete from keys where workspace_id = $1 and id = $2";
  await tx.query({ name: "purge-key", text, values: [workspaceId, keyId] });
}

/** Replaces the direct permissions of a key; unchanged links are not written. */
export async function replaceKeyPermissions(
  tx: Queryable,
  { workspaceId, keyId, permissionIds }: KeyRef & { permissionIds: readonly string[] },
): Promise<void> {
  const text = `with removed as (
                  delete from key_permissions
                   where workspace_id = $1 and key_id = $2 and permission_id <> all ($3::text[])
                )
                insert into key_permissions (key_id, permission_id, workspace_id)
                select $2, permission_id, $1
                  from unnest($3::text[]) as wanted (permission_id)
                on conflict do nothing`;
  await tx.query({ name: "replace-key-permissions", text, values: [workspaceId, keyId, permissionIds] });
}

/** Replaces the roles of a key; unchanged links are not written. */
export async function replaceKeyRoles(
  tx: Queryable,
  { workspaceId, keyId, roleIds }: KeyRef & { roleIds: readonly string[] },
): Promise<void> {
  const text = `with removed as (
                  delete from key_roles
                   where workspace_id = $1 and key_id = $2 and role_id <> all ($3::text[])
                )
                insert into key_roles (key_id, role_id, workspace_id)
                select $2, role_id, $1
                  from unnest($3::text[]) as wanted (role_id)
                on conflict do nothing`;
  await tx.query({ name: "replace-key-roles", text, values: [workspaceId, keyId, roleIds] });
}

const toJson = (meta: Json | null): string | null => (meta === null ? null : JSON.stringify(meta));
