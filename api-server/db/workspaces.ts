import { takeLock } from "../../postgres/advisory-locks.ts";
import type { Queryable } from "../../postgres/queryable.ts";

export interface WorkspaceRow {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Quota in requests per minute. `null` means unlimited; 0 rejects every request. */
  readonly quota_per_minute: number | null;
  readonly created_at: number;
}

/** Finds a workspace by id or name. If both match, the id takes precedence. */
export async function findWorkspace(
  db: Queryable,
  { workspace }: { workspace: string },
): Promise<WorkspaceRow | undefined> {
  const text = `select id, name, enabled, quota_per_minute, created_at
                  from workspaces
                 where (id = $1 or name = $1) and deleted_at is null
                 order by (id = $1) desc
                 limit 1`;
  const { rows } = await db.query<WorkspaceRow>({ name: "find-workspace", text, values: [workspace] });
  return rows[0];
}

/** Finds a workspace by id only, and locks it: other transactions cannot change its row until the current transaction ends. */
export async function lockWorkspace(
  tx: Queryable,
  { workspaceId }: { workspaceId: string },
): Promise<WorkspaceRow | undefined> {
  const text = `select id, name, enabled, quota_per_minute, created_at
                  from workspaces
                 where id = $1 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<WorkspaceRow>({ name: "lock-workspace", text, values: [workspaceId] });
  return rows[0];
}

/** Returns workspaces that are not deleted, sorted by name. */
export async function listWorkspaces(db: Queryable, { rowsMax }: { rowsMax: number }): Promise<WorkspaceRow[]> {
  const text = `select id, name, enabled, quota_per_minute, created_at
                  from workspaces
                 where deleted_at is null
                 order by name
                 limit $1`;
  const { rows } = await db.query<WorkspaceRow>({ name: "list-workspaces", text, values: [rowsMax] });
  return rows;
}

/** Returns workspaces by id or name, or all of them, sorted by name. A value that looks like an id is not compared with names. */
export async function listEnterable(
  db: Queryable,
  { named, rowsMax }: { named: "all" | readonly string[]; rowsMax: number },
): Promise<WorkspaceRow[]> {
  const text = `select id, name, enabled, quota_per_minute, created_at
                  from workspaces
                 where deleted_at is null and ($1::text[] is null or id = any($1) or (name = any($1) and not starts_with(name, 'ws_')))
                 order by name
                 limit $2`;
  const values = [named === "all" ? null : named, rowsMax];
  const { rows } = await db.query<WorkspaceRow>({ name: "list-enterable-workspaces", text, values });
  return rows;
}

/**
 * Returns workspaces that are not deleted, starting at `cursor`, sorted by id. `search` is a substring of id or name, ignoring case; the
 * empty string matches all.
 */
export async function pageWorkspaces(
  db: Queryable,
  { cursor, search, rowsMax }: { cursor: string; search: string; rowsMax: number },
): Promise<WorkspaceRow[]> {
  const text = `select w.id, w.name, w.enabled, w.quota_per_minute, w.created_at
                  from workspaces w
                 where w.deleted_at is null and w.id >= $1
                   and (position(lower($2) in lower(w.id)) > 0 or position(lower($2) in lower(w.name)) > 0)
                 order by w.id
                 limit $3`;
  const { rows } = await db.query<WorkspaceRow>({ name: "page-workspaces", text, values: [cursor, search, rowsMax] });
  return rows;
}

/** Returns the id of every workspace that is not deleted, sorted. */
export async function listWorkspaceIds(db: Queryable): Promise<string[]> {
  const text = "select id from workspaces where deleted_at is null order by id";
  const { rows } = await db.query<{ id: string }>({ name: "list-workspace-ids", text });
  return rows.map((row) => row.id);
}

/**
 * Returns the ids of all workspaces, sorted, including deleted ones: their tombstones are projected, so their change streams must exist.
 */
export async function listEveryWorkspaceId(db: Queryable): Promise<string[]> {
  const text = "select id from workspaces order by id";
  const { rows } = await db.query<{ id: string }>({ name: "list-every-workspace-id", text });
  return rows.map((row) => row.id);
}

/** Inserts a workspace. Returns false, and inserts nothing, if a workspace with this name or id exists. */
export async function insertWorkspace(
  db: Queryable,
  { id, name, createdAt }: { id: string; name: string; createdAt: number },
): Promise<boolean> {
  const text = `insert into workspaces (id, name, created_at)
                values ($1, $2, $3)
                on conflict do nothing`;
  const { rowCount } = await db.query({ name: "insert-workspace", text, values: [id, name, createdAt] });
  return rowCount === 1;
}

export async function updateWorkspace(
  tx: Queryable,
  {
    workspaceId,
    name,
    enabled,
    quotaPerMinute,
  }: { workspaceId: string; name: string; enabled: boolean; quotaPerMinute: number | null },
): Promise<void> {
  const text = `update workspaces
                   set name = $2, enabled = $3, quota_per_minute = $4
                 where id = $1`;
  await tx.query({ name: "update-workspace", text, values: [workspaceId, name, enabled, quotaPerMinute] });
}

/**
 * Returns whether another workspace is enabled. Holds a lock until the transaction ends, so that two transactions cannot disable the last
 * two workspaces at the same time: the second one waits and sees the change of the first.
 */
export async function isOtherWorkspaceOpen(tx: Queryable, { workspaceId }: { workspaceId: string }): Promise<boolean> {
  await takeLock(tx, "openWorkspaces");
  const text = `select exists (select from workspaces
                                where id <> $1 and deleted_at is null and enabled
                                  and quota_per_minute is distinct from 0) as is_open`;
  const { rows } = await tx.query<{ is_open: boolean }>({
    name: "is-other-workspace-open",
    text,
    values: [workspaceId],
  });
  return rows[0]?.is_open === true;
}
