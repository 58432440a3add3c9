import type { Queryable } from "./queryable.ts";

export interface WorkspaceRow {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly quota_per_minute: number | null;
}

/** Addressed by id or name; where both fit something, the id wins. */
export async function findWorkspace(
  db: Queryable,
  { workspace }: { workspace: string },
): Promise<WorkspaceRow | undefined> {
  const text = `select id, name, enabled, quota_per_minute
                  from workspaces
                 where (id = $1 or name = $1) and deleted_at is null
                 order by (id = $1) desc
                 limit 1`;
  const { rows } = await db.query<WorkspaceRow>({ name: "find-workspace", text, values: [workspace] });
  return rows[0];
}

/** Every workspace that is not deleted, by id. */
export async function listWorkspaceIds(db: Queryable): Promise<string[]> {
  const text = "select id from workspaces where deleted_at is null order by id";
  const { rows } = await db.query<{ id: string }>({ name: "list-workspace-ids", text });
  return rows.map((row) => row.id);
}

/** By id, deleted ones too: their tombstones are projected, so that their feeds must be there. */
export async function listEveryWorkspaceId(db: Queryable): Promise<string[]> {
  const text = "select id from workspaces order by id";
  const { rows } = await db.query<{ id: string }>({ name: "list-every-workspace-id", text });
  return rows.map((row) => row.id);
}

/** Unless one of this name (or id) exists; false when nothing was inserted. */
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
