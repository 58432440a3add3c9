import type { Queryable } from "../../postgres/queryable.ts";

/*
 * Returns display names of objects by id, in bulk. Includes deleted objects as long as their rows exist, because usage data outlives the
 * objects. `within` has the ids of the APIs or namespaces that the caller is allowed to see; `null` means all.
 */

interface Named {
  readonly workspaceId: string;
  readonly ids: readonly string[];
  readonly within: readonly string[] | null;
}

export interface KeyNameRow {
  readonly id: string;
  readonly api_id: string;
  readonly name: string | null;
  readonly start: string;
  readonly is_deleted: boolean;
}

export async function listKeyNames(db: Queryable, { workspaceId, ids, within }: Named): Promise<KeyNameRow[]> {
  const text = `select k.id, k.api_id, k.name, k.start, k.deleted_at is not null as is_deleted
                  from keys k
                 where k.workspace_id = $1 and k.id = any($2) and ($3::text[] is null or k.api_id = any($3))
                 order by k.id`;
  const { rows } = await db.query<KeyNameRow>({ name: "list-key-names", text, values: [workspaceId, ids, within] });
  return rows;
}

export interface ApiNameRow {
  readonly id: string;
  readonly key_space_id: string;
  readonly name: string;
  readonly is_deleted: boolean;
}

/** Returns the names of APIs by their ids or by the ids of their key spaces. */
export async function listApiNames(db: Queryable, { workspaceId, ids, within }: Named): Promise<ApiNameRow[]> {
  const text = `select a.id, a.key_space_id, a.name, a.deleted_at is not null as is_deleted
                  from apis a
                 where a.workspace_id = $1 and (a.id = any($2) or a.key_space_id = any($2))
                   and ($3::text[] is null or a.id = any($3))
                 order by a.id`;
  const { rows } = await db.query<ApiNameRow>({ name: "list-api-names", text, values: [workspaceId, ids, within] });
  return rows;
}

export interface NamespaceNameRow {
  readonly id: string;
  readonly name: string;
  readonly is_deleted: boolean;
}

export async function listNamespaceNames(
  db: Queryable,
  { workspaceId, ids, within }: Named,
): Promise<NamespaceNameRow[]> {
  const text = `select n.id, n.name, n.deleted_at is not null as is_deleted
                  from ratelimit_namespaces n
                 where n.workspace_id = $1 and n.id = any($2) and ($3::text[] is null or n.id = any($3))
                 order by n.id`;
  const values = [workspaceId, ids, within];
  const { rows } = await db.query<NamespaceNameRow>({ name: "list-namespace-names", text, values });
  return rows;
}
