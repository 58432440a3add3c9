import type { Procedure } from "../../../core/api/procedures.ts";

/** What the end of a role makes old: of a role that is gone nothing is read again. */
export const LISTED_BY: readonly Procedure[] = ["admin.listRoles", "admin.listPermissions"];

/** What a change of a role or a permission makes old. */
export const SHOWN_BY: readonly Procedure[] = [...LISTED_BY, "permissions.getRole"];
