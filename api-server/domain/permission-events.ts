import type { AuditEvent } from "../store/audit.ts";
import type { PermissionRow } from "../store/permissions.ts";

type Permission = Pick<PermissionRow, "id" | "slug">;

export const permissionUpdated = ({ id, slug }: Permission, what: string): AuditEvent => ({
  event: "permission.update",
  description: `${what} permission ${id}`,
  targets: [{ type: "permission", id, name: slug }],
});

export const permissionDeleted = ({ id, slug }: Permission): AuditEvent => ({
  event: "permission.delete",
  description: `Deleted permission ${id}`,
  targets: [{ type: "permission", id, name: slug }],
});
