import type { Queryable } from "../../postgres/queryable.ts";
import { containing } from "./pages.ts";

export interface RoleRow {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly manager: string | null;
}

export interface RoleRef {
  readonly workspaceId: string;
  readonly roleId: string;
}

/** Finds a role by id or name, ignoring case. If both match, the id takes precedence. */
export async function findRole(
  db: Queryable,
  { workspaceId, role }: { workspaceId: string; role: string },
): Promise<RoleRow | undefined> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and (id = $2 or lower(name) = lower($2))
                 order by (id = $2) desc
                 limit 1`;
  const { rows } = await db.query<RoleRow>({ name: "find-role", text, values: [workspaceId, role] });
  return rows[0];
}

/**
 * Like `findRole`, but also locks the role: other transactions cannot change its row until the current transaction ends. The role can still
 * be granted to keys, because its id does not change. A stronger lock would block such grants, and could deadlock with callers that create
 * permissions. Deleting the role waits for them.
 */
export async function lockRole(
  tx: Queryable,
  { workspaceId, role }: { workspaceId: string; role: string },
): Promise<RoleRow | undefined> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and (id = $2 or lower(name) = lower($2))
                 order by (id = $2) desc
                 limit 1
                   for no key update`;
  const { rows } = await tx.query<RoleRow>({ name: "lock-role", text, values: [workspaceId, role] });
  return rows[0];
}

/** Locks a role like `lockRole`, but finds it only by id. */
export async function lockRoleById(tx: Queryable, { workspaceId, roleId }: RoleRef): Promise<RoleRow | undefined> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and id = $2
                   for no key update`;
  const { rows } = await tx.query<RoleRow>({ name: "lock-role-by-id", text, values: [workspaceId, roleId] });
  return rows[0];
}

export interface RolePage {
  readonly workspaceId: string;
  /** First id of the page. The empty string precedes every id. */
  readonly cursor: string;
  readonly rowsMax: number;
}

/** Returns roles sorted by id. */
export async function listRoles(db: Queryable, { workspaceId, cursor, rowsMax }: RolePage): Promise<RoleRow[]> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and id >= $2
                 order by id
                 limit $3`;
  const { rows } = await db.query<RoleRow>({ name: "list-roles", text, values: [workspaceId, cursor, rowsMax] });
  return rows;
}

/** Returns roles with a text column that contains `search`, ignoring case. */
export async function searchRoles(
  db: Queryable,
  { workspaceId, cursor, rowsMax, search }: RolePage & { readonly search: string },
): Promise<RoleRow[]> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and id >= $2
                   and (id ilike $4 or name ilike $4 or description ilike $4)
                 order by id
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search)];
  const { rows } = await db.query<RoleRow>({ name: "search-roles", text, values });
  return rows;
}

/** Result for one requested name: the role with this name, or just `id: null` if the workspace has no such role. */
export type RequestedRoleRow = { readonly asked: string } & (RoleRow | { readonly id: null });

/** Returns roles by name. Only the database compares names, so that comparisons ignore case exactly as the unique index does. */
export async function listRolesByName(
  db: Queryable,
  { workspaceId, names }: { workspaceId: string; names: readonly string[] },
): Promise<RequestedRoleRow[]> {
  const text = `select asked.name as asked, r.id, r.name, r.description, r.manager
                  from unnest($2::text[]) as asked (name)
                  left join roles r on r.workspace_id = $1 and lower(r.name) = lower(asked.name)
                 order by r.name collate "C", asked.name collate "C"`;
  const { rows } = await db.query<RequestedRoleRow>({ name: "list-roles-by-name", text, values: [workspaceId, names] });
  return rows;
}

/** Returns the roles of the workspace with the given ids, sorted by name. */
export async function listRolesById(
  db: Queryable,
  { workspaceId, ids }: { workspaceId: string; ids: readonly string[] },
): Promise<RoleRow[]> {
  const text = `select id, name, description, manager
                  from roles
                 where workspace_id = $1 and id = any ($2::text[])
                 order by name collate "C"`;
  const { rows } = await db.query<RoleRow>({ name: "list-roles-by-id", text, values: [workspaceId, ids] });
  return rows;
}

/** Returns the roles of one key, sorted by name. */
export async function listRolesOfKey(
  db: Queryable,
  { workspaceId, keyId }: { workspaceId: string; keyId: string },
): Promise<RoleRow[]> {
  const text = `select r.id, r.name, r.description, r.manager
                  from key_roles kr
                  join roles r on r.id = kr.role_id
                 where kr.workspace_id = $1 and kr.key_id = $2
                 order by r.name collate "C"`;
  const { rows } = await db.query<RoleRow>({ name: "list-roles-of-key", text, values: [workspaceId, keyId] });
  return rows;
}

/**
 * Inserts a role, unless another role already has its name, id or manager.
 * @returns false if nothing was inserted.
 */
export async function insertRole(
  tx: Queryable,
  role: RoleRow & { readonly workspaceId: string; readonly createdAt: number },
): Promise<boolean> {
  const text = `insert into roles (id, workspace_id, name, description, manager, created_at)
                values ($1, $2, $3, $4, $5, $6)
                on conflict do nothing`;
  const { id, workspaceId, name, description, manager, createdAt } = role;
  const { rowCount } = await tx.query({
    name: "insert-role",
    text,
    values: [id, workspaceId, name, description, manager, createdAt],
  });
  return rowCount === 1;
}

/** Updates a role. Throws a violation of `roles_name` or `roles_manager` if another role has the name or the manager. */
export async function updateRole(
  tx: Queryable,
  { workspaceId, id, name, description, manager }: RoleRow & { readonly workspaceId: string },
): Promise<void> {
  const text = `update roles
                   set name = $3, description = $4, manager = $5
                 where workspace_id = $1 and id = $2`;
  await tx.query({ name: "update-role", text, values: [workspaceId, id, name, description, manager] });
}

/** Deletes a role with its links to keys and permissions. */
export async function deleteRole(tx: Queryable, { workspaceId, roleId }: RoleRef): Promise<void> {
  const text = "delete from roles where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-role", text, values: [workspaceId, roleId] });
}

/** Adds permissions to a role; existing links stay unchanged. */
export async function insertRolePermissions(
  tx: Queryable,
  { workspaceId, roleId, permissionIds }: RoleRef & { readonly permissionIds: readonly string[] },
): Promise<void> {
  const text = `insert into role_permissions (role_id, permission_id, workspace_id)
                select $2, permission_id, $1
                  from unnest($3::text[]) as wanted (permission_id)
                on conflict do nothing`;
  await tx.query({ name: "insert-role-permissions", text, values: [workspaceId, roleId, permissionIds] });
}

export async function deleteRolePermissions(
  tx: Queryable,
  { workspaceId, roleId, permissionIds }: RoleRef & { readonly permissionIds: readonly string[] },
): Promise<void> {
  const text = `delete from role_permissions
                 where workspace_id = $1 and role_id = $2 and permission_id = any ($3::text[])`;
  await tx.query({ name: "delete-role-permissions", text, values: [workspaceId, roleId, permissionIds] });
}
