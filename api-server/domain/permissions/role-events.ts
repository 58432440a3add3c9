import type { AuditEvent } from "../../db/audit.ts";
import type { PermissionRow } from "../../db/permissions.ts";
import type { RoleRow } from "../../db/roles.ts";

type Role = Pick<RoleRow, "id" | "name">;
type Permission = Pick<PermissionRow, "id" | "slug">;

const targets = (role: Role, permission: Permission): AuditEvent["targets"] => [
  { type: "role", id: role.id, name: role.name },
  { type: "permission", id: permission.id, name: permission.slug },
];

export const roleConnected = (role: Role, permission: Permission): AuditEvent => ({
  event: "authorization.connect_role_and_permission",
  description: `Connected role ${role.id} and permission ${permission.id}`,
  targets: targets(role, permission),
});

/** The event name is plural, unlike all others (api-v2.md section 20). */
export const roleDisconnected = (role: Role, permission: Permission): AuditEvent => ({
  event: "authorization.disconnect_role_and_permissions",
  description: `Disconnected role ${role.id} and permission ${permission.id}`,
  targets: targets(role, permission),
});
