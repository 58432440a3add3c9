import type { Procedure } from "../../../core/api/procedures.ts";

/** Procedures to read again after a role is deleted; the details of the deleted role are not among them. */
export const LISTED_BY: readonly Procedure[] = ["admin.listRoles", "admin.listPermissions"];

/** Procedures to read again after a change of a role or a permission. */
export const SHOWN_BY: readonly Procedure[] = [...LISTED_BY, "permissions.getRole"];
