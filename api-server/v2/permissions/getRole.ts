import * as z from "zod";
import { listPermissionsOfRole } from "../../db/permissions.ts";
import { findRole } from "../../db/roles.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { roleNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Role, RoleOut, toRoleOut } from "./schemas.ts";

const Body = z.strictObject({ role: Role });
type Body = z.output<typeof Body>;

const required = { readRole: onRbac("read_role") };

export const getRole = defineProcedure({
  path: "permissions.getRole",
  effect: "read",
  summary: "Read a role",
  description: "Reads a role with its permissions, by its id or name.",
  permissions: required,
  errors: ["role_not_found"],
  body: Body,
  data: RoleOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<RoleOut> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(required.readRole);
  const role = await findRole(deps.db, { workspaceId, role: body.role });
  if (role === undefined) throw roleNotFound(body.role);
  return toRoleOut(role, await listPermissionsOfRole(deps.db, { workspaceId, roleId: role.id }));
}
