import type { Queryable } from "./queryable.ts";

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

/** Slugs compare case-insensitively; the answer is in the order of the slugs. */
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

/** The permission that this manager manages, if there is one. */
export async function findPermissionByManager(
  db: Queryable,
  { workspaceId, manager }: { workspaceId: string; manager: string },
): Promise<PermissionRow | undefined> {
  const text = `select id, slug, name, description, manager
                  from permissions
                 where workspace_id = $1 and manager = $2`;
  const { rows } = await db.query<PermissionRow>({
    name: "find-permission-by-manager",
    text,
    values: [workspaceId, manager],
  });
  return rows[0];
}

/**
 * Inserts one permission unless its slug, its id or its manager is taken.
 * @returns false when nothing was inserted.
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
 * Inserts permissions that are named by their slug, except where the slug is taken already. Inserts in the order of the
 * slugs, so that two callers who make the same ones wait for each other instead of locking each other out.
 * @returns the ones that were inserted.
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

/** The permissions of one role, in the order of their slugs. */
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
