import type { Queryable } from "../../postgres/queryable.ts";
import { containing, type NamedPage } from "./pages.ts";
import type { PermissionRow } from "./permissions.ts";
import type { RoleRow } from "./roles.ts";

/*
 * Roles and permissions with their usage, for the dashboard. Both are sorted by name.
 *
 * If one role has a million keys, the Postgres planner expects a million keys for every role, and would scan all keys even for a role
 * without keys. The statements therefore compare the role id with `between ID and ID`: for a range, the planner uses the index of the role.
 * Only the first keys are counted; `offset 0` keeps the planner from joining all keys first.
 */

/**
 * Number up to which keys are counted. A million keys may hold a role or permission, but to a user, any number above this one just means
 * "many".
 */
export const USES_COUNTED_MAX = 1000;

export interface UsedRoleRow extends RoleRow {
  /** Number of live keys with the role, counted up to `USES_COUNTED_MAX` + 1. */
  readonly keys: number;
  readonly permissions: number;
}

/** Returns roles sorted by name, ignoring case. The statement is not prepared, so that Postgres plans it for each search text. */
export async function listUsedRoles(
  db: Queryable,
  { workspaceId, cursor, search, rowsMax }: NamedPage,
): Promise<UsedRoleRow[]> {
  const text = `select r.id, r.name, r.description, r.manager,
                       (select count(*)::int
                          from (select 1
                                  from key_roles kr
                                 where kr.role_id between r.id and r.id
                                   and exists (select from keys k where k.id = kr.key_id and k.deleted_at is null offset 0)
                                 limit $5 + 1) used) as keys,
                       (select count(*)::int from role_permissions rp where rp.role_id = r.id) as permissions
                  from roles r
                 where r.workspace_id = $1 and lower(r.name) >= lower($2)
                   and ($4 = '%%' or r.id ilike $4 or r.name ilike $4 or r.description ilike $4)
                 order by lower(r.name)
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search), USES_COUNTED_MAX];
  const { rows } = await db.query<UsedRoleRow>({ text, values });
  return rows;
}

export interface MatrixRow extends PermissionRow {
  /** Number of live keys that hold the permission directly, counted up to `USES_COUNTED_MAX` + 1. */
  readonly keys: number;
  /** Number of roles that grant the permission. */
  readonly roles: number;
  /** The roles that grant the permission, as sorted indexes (from 0) into the given role ids. */
  readonly granted: number[];
}

/** Returns permissions sorted by slug, ignoring case. For each permission, lists which of the given roles grant it. */
export async function listMatrixRows(
  db: Queryable,
  { workspaceId, cursor, search, rowsMax, roleIds }: NamedPage & { readonly roleIds: readonly string[] },
): Promise<MatrixRow[]> {
  const text = `select p.id, p.slug, p.name, p.description, p.manager,
                       (select count(*)::int
                          from (select 1
                                  from key_permissions kp
                                 where kp.permission_id between p.id and p.id
                                   and exists (select from keys k where k.id = kp.key_id and k.deleted_at is null offset 0)
                                 limit $5 + 1) used) as keys,
                       (select count(*)::int from role_permissions rp where rp.permission_id = p.id) as roles,
                       array(select asked.place::int - 1
                               from unnest($6::text[]) with ordinality as asked (role_id, place)
                               join role_permissions rp on rp.role_id = asked.role_id
                              where rp.permission_id = p.id and rp.workspace_id = $1
                              order by asked.place) as granted
                  from permissions p
                 where p.workspace_id = $1 and lower(p.slug) >= lower($2)
                   and ($4 = '%%' or p.id ilike $4 or p.name ilike $4 or p.slug ilike $4 or p.description ilike $4)
                 order by lower(p.slug)
                 limit $3`;
  const values = [workspaceId, cursor, rowsMax, containing(search), USES_COUNTED_MAX, roleIds];
  const { rows } = await db.query<MatrixRow>({ text, values });
  return rows;
}
