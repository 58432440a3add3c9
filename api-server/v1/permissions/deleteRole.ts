import * as z from "zod";
import { findRole } from "../../db/roles.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { roleNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty } from "../schemas.ts";
import { RoleId } from "./schemas.ts";

const Body = z.object({ roleId: RoleId });
type Body = z.output<typeof Body>;

const required = { deleteRole: onRbac("delete_role") };

export const deleteRole = defineV1Procedure({
  path: "permissions.deleteRole",
  method: "POST",
  successor: "permissions.deleteRole",
  effect: "change",
  summary: "Delete a role",
  description: "Removes the role from all keys. Its name can be reused. The deletion cannot be undone.",
  permissions: required,
  errors: ["role_not_found", "managed_by_manifest"],
  input: Body,
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  call.require(required.deleteRole);
  const { roleId } = body;
  const { workspaceId } = caller;
  const row = await findRole(deps.db, { workspaceId, role: roleId });
  // `findRole` also finds roles by name, but this procedure accepts only ids.
  if (row?.id !== roleId) throw roleNotFound(roleId);
  await deleteHeld(call, MANAGED.role, { workspaceId, which: roleId });
  return {};
}
