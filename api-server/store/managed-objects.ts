import type { Queryable } from "./queryable.ts";

/*
 * Who manages what, for managed.getObject: one statement for each kind of object. Only live objects are seen.
 */

export interface ObjectRef {
  readonly workspaceId: string;
  readonly id: string;
}

export interface ManagedRow {
  readonly manager: string | null;
}

export async function findManagedApi(db: Queryable, { workspaceId, id }: ObjectRef): Promise<ManagedRow | undefined> {
  const text = "select manager from apis where workspace_id = $1 and id = $2 and deleted_at is null";
  const { rows } = await db.query<ManagedRow>({ name: "find-managed-api", text, values: [workspaceId, id] });
  return rows[0];
}

export async function findManagedRole(db: Queryable, { workspaceId, id }: ObjectRef): Promise<ManagedRow | undefined> {
  const text = "select manager from roles where workspace_id = $1 and id = $2";
  const { rows } = await db.query<ManagedRow>({ name: "find-managed-role", text, values: [workspaceId, id] });
  return rows[0];
}

export async function findManagedPermission(
  db: Queryable,
  { workspaceId, id }: ObjectRef,
): Promise<ManagedRow | undefined> {
  const text = "select manager from permissions where workspace_id = $1 and id = $2";
  const { rows } = await db.query<ManagedRow>({ name: "find-managed-permission", text, values: [workspaceId, id] });
  return rows[0];
}

export async function findManagedNamespace(
  db: Queryable,
  { workspaceId, id }: ObjectRef,
): Promise<ManagedRow | undefined> {
  const text = "select manager from ratelimit_namespaces where workspace_id = $1 and id = $2 and deleted_at is null";
  const { rows } = await db.query<ManagedRow>({ name: "find-managed-namespace", text, values: [workspaceId, id] });
  return rows[0];
}

export async function findManagedOverride(
  db: Queryable,
  { workspaceId, id }: ObjectRef,
): Promise<(ManagedRow & { readonly namespace_id: string; readonly async: boolean }) | undefined> {
  const text = `select namespace_id, async, manager
                  from ratelimit_overrides
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { rows } = await db.query<ManagedRow & { namespace_id: string; async: boolean }>({
    name: "find-managed-override",
    text,
    values: [workspaceId, id],
  });
  return rows[0];
}

/** A key of a deleted API is not live. */
export async function findManagedKey(
  db: Queryable,
  { workspaceId, id }: ObjectRef,
): Promise<(ManagedRow & { readonly api_id: string }) | undefined> {
  const text = `select k.api_id, k.manager
                  from keys k
                  join apis a on a.id = k.api_id and a.deleted_at is null
                 where k.workspace_id = $1 and k.id = $2 and k.deleted_at is null`;
  const { rows } = await db.query<ManagedRow & { api_id: string }>({
    name: "find-managed-key",
    text,
    values: [workspaceId, id],
  });
  return rows[0];
}

export async function findManagedPolicy(
  db: Queryable,
  { workspaceId, id }: ObjectRef,
): Promise<(ManagedRow & { readonly api_id: string }) | undefined> {
  const text = "select api_id, manager from policies where workspace_id = $1 and id = $2 and deleted_at is null";
  const { rows } = await db.query<ManagedRow & { api_id: string }>({
    name: "find-managed-policy",
    text,
    values: [workspaceId, id],
  });
  return rows[0];
}
