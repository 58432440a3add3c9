import type { Queryable } from "../../postgres/queryable.ts";

/** A root key that is not revoked, with its workspace. */
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

/** Finds a root key only by its hash, because the root key determines the workspace. */
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
  /** Display label of the new root key. Default: no label. */
  readonly environment?: string | null;
  /** Id of the root key that the new one replaces. Default: none is replaced. */
  readonly predecessorId?: string | null;
}

export async function insertRootKey(db: Queryable, rootKey: NewRootKey): Promise<void> {
  const text = `insert into root_keys (id, workspace_id, hash, start, name, permissions, expires_at, created_at, environment,
                                       predecessor_id)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;
  const { id, workspaceId, hash, start, name, permissions, expiresAt, createdAt } = rootKey;
  const { environment = null, predecessorId = null } = rootKey;
  await db.query({
    name: "insert-root-key",
    text,
    values: [id, workspaceId, hash, start, name, permissions, expiresAt, createdAt, environment, predecessorId],
  });
}

/**
 * Registers a root key whose string comes from the configuration. Called at each start: if the root key already exists, it gets the grants
 * of this version, and is live again if it was revoked.
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

/** Root key as administrators see it: without its string and hash. */
export interface RootKeySummary {
  readonly id: string;
  readonly workspace_id: string;
  readonly name: string | null;
  readonly start: string;
  readonly environment: string | null;
  readonly permissions: string[];
  /** Time at which the root key got its current permissions; `null` if it has had them since its creation. */
  readonly permissions_changed_at: number | null;
  readonly enabled: boolean;
  readonly expires_at: number | null;
  readonly created_at: number;
  /** Id of the root key that this one replaced. That root key may be revoked. */
  readonly predecessor_id: string | null;
  /** Id of this root key's successor, even if the successor is revoked. */
  readonly successor_id: string | null;
  /** Revision of the root key, incremented by each update. */
  readonly revision: number;
  /** The last UTC date on which the root key called v1. */
  readonly v1_used_on: string | null;
}

export interface RootKeyRef {
  readonly workspaceId: string;
  readonly rootKeyId: string;
}

const SUMMARY = `r.id, r.workspace_id, r.name, r.start, r.environment, r.permissions, r.permissions_changed_at, r.enabled,
                       r.expires_at, r.created_at, r.predecessor_id, r.successor_id, r.revision,
                       u.last_used_on::text as v1_used_on
                  from root_keys r
                  left join root_key_v1_usage u on u.root_key_id = r.id`;

export const ROOT_KEY_STATES = ["active", "disabled", "expired"] as const;
export type RootKeyState = (typeof ROOT_KEY_STATES)[number];

/** State of a root key. If a root key is both disabled and expired, its state is `disabled`. */
export const rootKeyState = (
  { enabled, expires_at: expiresAt }: Pick<RootKeySummary, "enabled" | "expires_at">,
  nowMs: number,
): RootKeyState => (!enabled ? "disabled" : expiresAt !== null && nowMs > expiresAt ? "expired" : "active");

export interface RootKeyPage {
  readonly workspaceId: string;
  /** Id of the first row of the page. */
  readonly cursor: string;
  /** Substring of id, name or start, ignoring case; the empty string matches all. */
  readonly search: string;
  /** Environment of the root keys; `null` matches all. */
  readonly environment: string | null;
  /** State at `nowMs`, as `rootKeyState` returns it; `null` matches all. */
  readonly state: RootKeyState | null;
  readonly nowMs: number;
  /** Matches root keys whose last v1 call was on or after this UTC date; `null` matches all, including those that never called v1. */
  readonly v1UsedSince: string | null;
  readonly rowsMax: number;
  /** Maximum total size, in bytes, of the permissions in the page's rows, not counting the last row. */
  readonly bytesMax: number;
}

export interface PagedRootKey extends RootKeySummary {
  /** Id of the first root key after this page; `null` if no further root key exists, or at most `rowsMax` were requested. */
  readonly next_id: string | null;
}

/** Returns root keys that are not revoked, starting at `cursor`, sorted by id: at least the first, and as many as fit into a page. */
export async function pageRootKeys(db: Queryable, page: RootKeyPage): Promise<PagedRootKey[]> {
  const text = `with page as (
                select ${SUMMARY}
                 where r.workspace_id = $1 and r.deleted_at is null
                   and r.id >= $2
                   and (position(lower($3) in lower(r.id)) > 0 or position(lower($3) in lower(r.start)) > 0
                        or position(lower($3) in lower(coalesce(r.name, ''))) > 0)
                   and ($4::text is null or r.environment = $4)
                   and ($5::text is null
                        or $5 = case when not r.enabled then 'disabled' when r.expires_at < $6 then 'expired' else 'active' end)
                   and ($7::text is null or u.last_used_on >= to_date($7, 'YYYY-MM-DD'))
                 order by r.id
                 limit $8),
                placed as (
                select p.*, lead(p.id) over (order by p.id) as next_id,
                       coalesce(sum(octet_length(array_to_string(p.permissions, ' ')))
                                  over (order by p.id rows between unbounded preceding and 1 preceding), 0) as bytes_before
                  from page p)
                select p.*
                  from placed p
                 where p.bytes_before <= $9
                 order by p.id`;
  const { workspaceId, cursor, search, environment, state, nowMs, v1UsedSince, rowsMax, bytesMax } = page;
  const values = [workspaceId, cursor, search, environment, state, nowMs, v1UsedSince, rowsMax, bytesMax];
  const { rows } = await db.query<PagedRootKey>({ name: "page-root-keys", text, values });
  return rows;
}

/** Returns a root key that is not revoked. */
export async function findRootKeySummary(
  db: Queryable,
  { workspaceId, rootKeyId }: RootKeyRef,
): Promise<RootKeySummary | undefined> {
  const text = `select ${SUMMARY}
                 where r.workspace_id = $1 and r.id = $2 and r.deleted_at is null`;
  const values = [workspaceId, rootKeyId];
  const { rows } = await db.query<RootKeySummary>({ name: "find-root-key-summary", text, values });
  return rows[0];
}

/** The last root key in a chain of rotations, in which each root key replaces the previous one. The chain includes revoked root keys. */
export interface LastSuccessor {
  /** Whether the direct successor, which is the first root key of the chain, is still live (not revoked). */
  readonly is_succeeded: boolean;
  readonly created_at: number;
  readonly expires_at: number | null;
}

/** Returns the last root key of the chain that starts with the given successor; `undefined` if no root key has this id. */
export async function findLastSuccessor(
  db: Queryable,
  { workspaceId, successorId }: { workspaceId: string; successorId: string },
): Promise<LastSuccessor | undefined> {
  const text = `with recursive line as (
                  select 1 as place, r.successor_id, r.created_at, r.expires_at, r.deleted_at is null as is_succeeded
                    from root_keys r
                   where r.workspace_id = $1 and r.id = $2
                   union all
                  select l.place + 1, r.successor_id, r.created_at, r.expires_at, l.is_succeeded
                    from line l
                    join root_keys r on r.workspace_id = $1 and r.id = l.successor_id)
                select l.is_succeeded, l.created_at, l.expires_at
                  from line l
                 order by l.place desc
                 limit 1`;
  const values = [workspaceId, successorId];
  const { rows } = await db.query<LastSuccessor>({ name: "find-last-successor", text, values });
  return rows[0];
}

/** Returns a root key that is not revoked, and locks its row against changes until this transaction ends. */
export async function lockRootKey(
  tx: Queryable,
  { workspaceId, rootKeyId }: RootKeyRef,
): Promise<RootKeySummary | undefined> {
  const text = `select ${SUMMARY}
                 where r.workspace_id = $1 and r.id = $2 and r.deleted_at is null
                   for update of r`;
  const { rows } = await tx.query<RootKeySummary>({ name: "lock-root-key", text, values: [workspaceId, rootKeyId] });
  return rows[0];
}

/** Settings of a root key that an administrator changes. */
export type RootKeySettings = Pick<
  RootKeySummary,
  "name" | "environment" | "enabled" | "expires_at" | "permissions" | "permissions_changed_at" | "successor_id"
>;

/** Replaces the settings of a root key, and increments its revision. */
export async function updateRootKey(
  tx: Queryable,
  { workspaceId, rootKeyId, settings }: RootKeyRef & { settings: RootKeySettings },
): Promise<void> {
  const text = `update root_keys
                   set name = $3, environment = $4, enabled = $5, expires_at = $6, permissions = $7,
                       permissions_changed_at = $8, successor_id = $9, revision = revision + 1
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { name, environment, enabled, permissions } = settings;
  const { expires_at: expiresAt, permissions_changed_at: changedAt, successor_id: successorId } = settings;
  const values = [workspaceId, rootKeyId, name, environment, enabled, expiresAt, permissions, changedAt, successorId];
  await tx.query({ name: "update-root-key", text, values });
}

/** Revokes a root key. Returns false if it does not exist or is already revoked. */
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
