import * as z from "zod";
import { findPermission } from "../../db/permissions.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { permissionNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Permission, PermissionOut, toPermissionOut } from "./schemas.ts";

const Body = z.strictObject({ permission: Permission });
type Body = z.output<typeof Body>;

const required = { readPermission: onRbac("read_permission") };

export const getPermission = defineProcedure({
  path: "permissions.getPermission",
  effect: "read",
  summary: "Read a permission",
  description: "Reads a permission by its id or slug.",
  permissions: required,
  errors: ["permission_not_found"],
  body: Body,
  data: PermissionOut,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Body, typeof required>): Promise<PermissionOut> {
  require(required.readPermission);
  const { workspaceId } = caller;
  const permission = await findPermission(deps.db, { workspaceId, permission: body.permission });
  if (permission === undefined) throw permissionNotFound(body.permission);
  return toPermissionOut(permission);
}
