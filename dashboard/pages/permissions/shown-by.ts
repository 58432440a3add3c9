import type { Procedure } from "../../../core/api/procedures.ts";

/** What a change of a role or a permission makes old. */
export const SHOWN_BY: readonly Procedure[] = ["admin.listRoles", "admin.listPermissions", "permissions.getRole"];
