import type { Queryable } from "../../postgres/queryable.ts";
import { containing, fitting } from "./pages.ts";

export interface PermissionRow {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string | null;
  readonly manager: string | null;
}

export interface NewPermission {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string | null;
}

/** Returns permissions sorted by slug. Slugs are compared case-insensitively. */
export async function listPermissionsBySlug(
  db: Queryable,
  { workspaceId, slugs }: { workspaceId: string; slugs: readonly string[] },
): Promise<PermissionRow[]> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and lower(slug) in (select lower(slug) from unnest($2::text[]) as asked (slug))
                 order by slug collate "C"`;
  const { rows } = await db.query<PermissionRow>({
    name: "list-permissions-by-slug",
    text,
    values: [workspaceId, slugs],
  });
  return rows;
}

/** Returns the permissions of the workspace with the given ids, sorted by slug. */
export async function listPermissionsById(
  db: Queryable,
  { workspaceId, ids }: { workspaceId: string; ids: readonly string[] },
): Promise<PermissionRow[]> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and id = any ($2::text[])
                 order by slug collate "C"`;
  const { rows } = await db.query<PermissionRow>({ name: "list-permissions-by-id", text, values: [workspaceId, ids] });
  return rows;
}

/** Finds a permission by id or slug; slugs are case-insensitive. If both match, the id takes precedence. */
export async function findPermission(
  db: Queryable,
  { workspaceId, permission }: { workspaceId: string; permission: string },
): Promise<PermissionRow | undefined> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and (id = $2 or lower(slug) = lower($2))
                 order by (id = $2) desc
                 limit 1`;
  const { rows } = await db.query<PermissionRow>({ name: "find-permission", text, values: [workspaceId, permission] });
  return rows[0];
}

/**
 * Like `findPermission`, but also locks the permission: no other transaction can change its row until the current transaction ends. The
 * permission can still be granted.
 */
export async function lockPermission(
  tx: Queryable,
  { workspaceId, permission }: { workspaceId: string; permission: string },
): Promise<PermissionRow | undefined> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and (id = $2 or lower(slug) = lower($2))
                 order by (id = $2) desc
                 limit 1
                   for no key update`;
  const { rows } = await tx.query<PermissionRow>({ name: "lock-permission", text, values: [workspaceId, permission] });
  return rows[0];
}

export interface PermissionPage {
  readonly workspaceId: string;
  /** First id of the page. The empty string precedes every id. */
  readonly cursor: string;
  readonly rowsMax: number;
}

/** Returns permissions sorted by id. */
export async function listPermissions(
  db: Queryable,
  { workspaceId, cursor, rowsMax }: PermissionPage,
): Promise<PermissionRow[]> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and id >= $2
                 order by id
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax];
  const { rows } = await db.query<PermissionRow>({ name: "list-permissions", text, values });
  return rows;
}

/** Returns permissions with a text column that contains `search`, ignoring case. */
export async function searchPermissions(
  db: Queryable,
  { workspaceId, cursor, rowsMax, search }: PermissionPage & { readonly search: string },
): Promise<PermissionRow[]> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and id >= $2
                   and (id ilike $4 or name ilike $4 or slug ilike $4 or description ilike $4)
                 order by id
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search)];
  const { rows } = await db.query<PermissionRow>({ name: "search-permissions", text, values });
  return rows;
}

/**
 * Inserts a permission, unless another permission already has its slug, id or manager.
 * @returns false if nothing was inserted.
 */
export async function insertPermission(
  db: Queryable,
  permission: NewPermission & { workspaceId: string; manager: string | null; createdAt: number },
): Promise<boolean> {
  const text = `insert into permissions (id, workspace_id, slug, name, description, manager, created_at)
                values ($1, $2, $3, $4, $5, $6, $7)
                on conflict do nothing`;
  const { id, workspaceId, slug, name, description, manager, createdAt } = permission;
  const { rowCount } = await db.query({
    name: "insert-permission",
    text,
    values: [id, workspaceId, slug, name, description, manager, createdAt],
  });
  return rowCount === 1;
}

/**
 * Inserts permissions, each named after its slug, and skips existing slugs. Inserts in slug order, so that two callers with the same slugs
 * do not deadlock.
 */
export async function insertPermissionsForSlugs(
  db: Queryable,
  {
    workspaceId,
    createdAt,
    permissions,
  }: { workspaceId: string; createdAt: number; permissions: readonly { id: string; slug: string }[] },
): Promise<PermissionRow[]> {
  const text = `insert into permissions (id, workspace_id, slug, name, created_at)
                select id, $1, slug, slug, $2
                  from unnest($3::text[], $4::text[]) as wanted (id, slug)
                 order by lower(slug)
                on conflict do nothing
                returning id, slug, name, description, manager`;
  const { rows } = await db.query<PermissionRow>({
    name: "insert-permissions-for-slugs",
    text,
    values: [workspaceId, createdAt, permissions.map(({ id }) => id), permissions.map(({ slug }) => slug)],
  });
  return rows;
}

/** Updates a permission, except its slug. Throws a violation of `permissions_manager` if the manager has another permission. */
export async function updatePermission(
  tx: Queryable,
  { workspaceId, id, name, description, manager }: Omit<PermissionRow, "slug"> & { readonly workspaceId: string },
): Promise<void> {
  const text = `update permissions
                   set name = $3, description = $4, manager = $5
                 where workspace_id = $1 and id = $2`;
  await tx.query({ name: "update-permission", text, values: [workspaceId, id, name, description, manager] });
}

/** Deletes a permission with its links to keys and roles. */
export async function deletePermission(
  tx: Queryable,
  { workspaceId, permissionId }: { workspaceId: string; permissionId: string },
): Promise<void> {
  const text = "delete from permissions where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-permission", text, values: [workspaceId, permissionId] });
}

/** Result for one requested text: the permission with this id or slug, or just `id: null` if the workspace has no such permission. */
export type RequestedPermissionRow = { readonly asked: string } & (PermissionRow | { readonly id: null });

/** Finds permissions by id or slug, ignoring case, in the order of the request. If both match, the id takes precedence. */
export async function listPermissionsByIdOrSlug(
  db: Queryable,
  { workspaceId, permissions }: { workspaceId: string; permissions: readonly string[] },
): Promise<RequestedPermissionRow[]> {
  const text = `select asked.permission as asked, p.id, p.slug, p.name, p.description, p.manager
                  from unnest($2::text[]) with ordinality as asked (permission, position)
                  left join lateral (
                    select id, slug, name, description, manager
                      from permissions
                     where workspace_id = $1 and (id = asked.permission or lower(slug) = lower(asked.permission))
                     order by (id = asked.permission) desc
                     limit 1
                  ) p on true
                 order by asked.position`;
  const { rows } = await db.query<RequestedPermissionRow>({
    name: "list-permissions-by-id-or-slug",
    text,
    values: [workspaceId, permissions],
  });
  return rows;
}

/** Returns the direct permissions of one key, sorted by slug. */
export async function listPermissionsOfKey(
  db: Queryable,
  { workspaceId, keyId }: { workspaceId: string; keyId: string },
): Promise<PermissionRow[]> {
  const text = `select p.id, p.slug, p.name, p.description, p.manager
                  from key_permissions kp
                  join permissions p on p.id = kp.permission_id
                 where kp.workspace_id = $1 and kp.key_id = $2
                 order by p.slug collate "C"`;
  const { rows } = await db.query<PermissionRow>({
    name: "list-permissions-of-key",
    text,
    values: [workspaceId, keyId],
  });
  return rows;
}

/** Returns the permissions of one role, sorted by slug. */
export async function listPermissionsOfRole(
  db: Queryable,
  { workspaceId, roleId }: { workspaceId: string; roleId: string },
): Promise<PermissionRow[]> {
  const text = `select p.id, p.slug, p.name, p.description, p.manager
                  from role_permissions rp
                  join permissions p on p.id = rp.permission_id
                 where rp.workspace_id = $1 and rp.role_id = $2
                 order by p.slug collate "C"`;
  const { rows } = await db.query<PermissionRow>({
    name: "list-permissions-of-role",
    text,
    values: [workspaceId, roleId],
  });
  return rows;
}

/** Returns the permissions of several roles, sorted by slug within each role. */
export async function listPermissionsOfRoles(
  db: Queryable,
  { workspaceId, roleIds }: { workspaceId: string; roleIds: readonly string[] },
): Promise<(PermissionRow & { readonly role_id: string })[]> {
  const text = `select rp.role_id, p.id, p.slug, p.name, p.description, p.manager
                  from role_permissions rp
                  join permissions p on p.id = rp.permission_id
                 where rp.workspace_id = $1 and rp.role_id = any ($2::text[])
                 order by rp.role_id, p.slug collate "C"`;
  const { rows } = await db.query<PermissionRow & { role_id: string }>({
    name: "list-permissions-of-roles",
    text,
    values: [workspaceId, roleIds],
  });
  return rows;
}

/**
 * Returns how many of the roles, in the given order, fit into `bytesMax` with all of their permissions; 0 if even the first role is too
 * large. Roles are measured one at a time.
 */
export async function countRolesThatFit(
  db: Queryable,
  { workspaceId, roleIds, bytesMax }: { workspaceId: string; roleIds: readonly string[]; bytesMax: number },
): Promise<number> {
  const bytesOfNext = `select coalesce(sum(octet_length(p.id) + octet_length(p.slug) + octet_length(p.name)
                                     + coalesce(octet_length(p.description), 0) + 60), 0)::bigint
                   from role_permissions rp
                   join permissions p on p.id = rp.permission_id
                  where rp.workspace_id = $1 and rp.role_id = next.id`;
  const text = `${fitting(bytesOfNext)}
                select max(f.place) as places from fitting f where f.bytes <= $3`;
  const values = [workspaceId, roleIds, bytesMax];
  const { rows } = await db.query<{ places: number }>({ name: "count-roles-that-fit", text, values });
  return rows[0]?.places ?? 0;
}
