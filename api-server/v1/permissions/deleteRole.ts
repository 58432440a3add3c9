import * as z from "zod";
import { MANAGED } from "../../domain/managed/things.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { roleNotFound } from "../../domain/refusals/not-found.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { findRole } from "../../store/roles.ts";
import { Empty } from "../schemas.ts";
import { RoleId } from "./schemas.ts";

const Body = z.object({ roleId: RoleId });
type Body = z.output<typeof Body>;

const needed = { deleteRole: onRbac("delete_role") };

export const deleteRole = defineV1Procedure({
  path: "permissions.deleteRole",
  method: "POST",
  successor: "permissions.deleteRole",
  effect: "change",
  summary: "Delete a role",
  description: "Every key that has it loses it, and its name is free again. This cannot be undone.",
  permissions: needed,
  errors: ["role_not_found", "managed_elsewhere"],
  input: Body,
  answer: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  call.require(needed.deleteRole);
  const { roleId } = body;
  const { workspaceId } = caller;
  const row = await findRole(deps.db, { workspaceId, role: roleId });
  // A name is found too, which is no id here.
  if (row?.id !== roleId) throw roleNotFound(roleId);
  await deleteHeld(call, MANAGED.role, { workspaceId, which: roleId });
  return {};
}
