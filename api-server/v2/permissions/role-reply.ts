import type { Queryable } from "../../../postgres/queryable.ts";
import { listPermissionsOfRoles } from "../../db/permissions.ts";
import type { RoleRow } from "../../db/roles.ts";
import { type RoleOut, toRoleOut } from "./schemas.ts";

/** Returns roles in the form of the API (api-v2.md section 6.2), in the given order, with one query for all their permissions. */
export async function describeRoles(db: Queryable, workspaceId: string, roles: readonly RoleRow[]): Promise<RoleOut[]> {
  if (roles.length === 0) return [];
  const permissions = await listPermissionsOfRoles(db, { workspaceId, roleIds: roles.map(({ id }) => id) });
  const byRole = Map.groupBy(permissions, (one) => one.role_id);
  return roles.map((role) => toRoleOut(role, byRole.get(role.id) ?? []));
}
