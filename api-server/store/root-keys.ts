import type { Queryable } from "./queryable.ts";

/** A root key that was not revoked, with its workspace. */
export interface RootKeyRow {
  readonly id: string;
  readonly workspace_id: string;
  readonly name: string | null;
  readonly permissions: string[];
  readonly enabled: boolean;
  readonly expires_at: number | null;
  readonly workspace_enabled: boolean;
  readonly quota_per_minute: number | null;
}

/** By hash only, because the root key determines the workspace. */
export async function findRootKey(db: Queryable, { hash }: { hash: string }): Promise<RootKeyRow | undefined> {
  const text = `select r.id, r.workspace_id, r.name, r.permissions, r.enabled, r.expires_at,
                       w.enabled as workspace_enabled, w.quota_per_minute
                  from root_keys r
                  join workspaces w on w.id = r.workspace_id
                 where r.hash = $1 and r.deleted_at is null and w.deleted_at is null`;
  const { rows } = await db.query<RootKeyRow>({ name: "find-root-key", text, values: [hash] });
  return rows[0];
}

export interface NewRootKey {
  readonly id: string;
  readonly workspaceId: string;
  readonly hash: string;
  readonly start: string;
  readonly name: string | null;
  readonly permissions: readonly string[];
  readonly expiresAt: number | null;
  readonly createdAt: number;
}

export async function insertRootKey(db: Queryable, rootKey: NewRootKey): Promise<void> {
  const text = `insert into root_keys (id, workspace_id, hash, start, name, permissions, expires_at, created_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8)`;
  const { id, workspaceId, hash, start, name, permissions, expiresAt, createdAt } = rootKey;
  await db.query({
    name: "insert-root-key",
    text,
    values: [id, workspaceId, hash, start, name, permissions, expiresAt, createdAt],
  });
}

/**
 * Registers a root key whose string comes from the configuration, at each start: the same string gets the grants of this
 * version, and becomes live again if it was revoked.
 */
export async function upsertRootKey(db: Queryable, rootKey: NewRootKey): Promise<void> {
  const text = `insert into root_keys (id, workspace_id, hash, start, name, permissions, expires_at, created_at)
                values ($1, $2, $3, $4, $5, $6, $7, $8)
                on conflict (hash) do update
                   set workspace_id = excluded.workspace_id, name = excluded.name, permissions = excluded.permissions,
                       enabled = true, expires_at = excluded.expires_at, deleted_at = null`;
  const { id, workspaceId, hash, start, name, permissions, expiresAt, createdAt } = rootKey;
  await db.query({
    name: "upsert-root-key",
    text,
    values: [id, workspaceId, hash, start, name, permissions, expiresAt, createdAt],
  });
}

/** What administrators may see of a root key: neither its string nor its hash. */
export interface RootKeySummary {
  readonly id: string;
  readonly workspace_id: string;
  readonly name: string | null;
  readonly start: string;
  readonly permissions: string[];
  readonly enabled: boolean;
  readonly expires_at: number | null;
  readonly created_at: number;
  /** The last UTC date on which it called v1. */
  readonly v1_used_on: string | null;
}

export interface RootKeyRef {
  readonly workspaceId: string;
  readonly rootKeyId: string;
}

/** Root keys that are not revoked, oldest first. With `v1UsedSince`, a UTC date, only those that called v1 on that day or later. */
export async function listRootKeys(
  db: Queryable,
  { workspaceId, v1UsedSince, rowsMax }: { workspaceId: string; v1UsedSince: string | null; rowsMax: number },
): Promise<RootKeySummary[]> {
  const text = `select r.id, r.workspace_id, r.name, r.start, r.permissions, r.enabled, r.expires_at, r.created_at,
                       u.last_used_on::text as v1_used_on
                  from root_keys r
                  left join root_key_v1_uses u on u.root_key_id = r.id
                 where r.workspace_id = $1 and r.deleted_at is null and ($2::date is null or u.last_used_on >= $2::date)
                 order by r.created_at, r.id
                 limit $3`;
  const values = [workspaceId, v1UsedSince, rowsMax];
  const { rows } = await db.query<RootKeySummary>({ name: "list-root-keys", text, values });
  return rows;
}

/** A root key that is not revoked, with a lock: no other transaction can change the row until this one ends. */
export async function lockRootKey(
  tx: Queryable,
  { workspaceId, rootKeyId }: RootKeyRef,
): Promise<RootKeySummary | undefined> {
  const text = `select r.id, r.workspace_id, r.name, r.start, r.permissions, r.enabled, r.expires_at, r.created_at,
                       u.last_used_on::text as v1_used_on
                  from root_keys r
                  left join root_key_v1_uses u on u.root_key_id = r.id
                 where r.workspace_id = $1 and r.id = $2 and r.deleted_at is null
                   for update of r`;
  const { rows } = await tx.query<RootKeySummary>({ name: "lock-root-key", text, values: [workspaceId, rootKeyId] });
  return rows[0];
}

export async function updateRootKey(
  tx: Queryable,
  {
    workspaceId,
    rootKeyId,
    enabled,
    expiresAt,
    permissions,
  }: RootKeyRef & { enabled: boolean; expiresAt: number | null; permissions: readonly string[] },
): Promise<void> {
  const text = `update root_keys
                   set enabled = $3, expires_at = $4, permissions = $5
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const values = [workspaceId, rootKeyId, enabled, expiresAt, permissions];
  await tx.query({ name: "update-root-key", text, values });
}

/** Revokes a root key. Returns false when there was none to revoke. */
export async function deleteRootKey(
  db: Queryable,
  { workspaceId, rootKeyId, deletedAt }: RootKeyRef & { deletedAt: number },
): Promise<boolean> {
  const text = `update root_keys
                   set deleted_at = $3
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { rowCount } = await db.query({ name: "delete-root-key", text, values: [workspaceId, rootKeyId, deletedAt] });
  return rowCount === 1;
}
