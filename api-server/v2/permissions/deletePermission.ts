import * as z from "zod";
import { MANAGED } from "../../domain/managed/resources.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Permission } from "./schemas.ts";

const Body = z.strictObject({ permission: Permission });
type Body = z.output<typeof Body>;

const required = { deletePermission: onRbac("delete_permission") };

export const deletePermission = defineProcedure({
  path: "permissions.deletePermission",
  effect: "change",
  summary: "Delete a permission",
  description: "Removes the permission from all keys and roles. Its slug can be reused. The deletion cannot be undone.",
  permissions: required,
  errors: ["permission_not_found", "managed_by_manifest"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller } = call;
  call.require(required.deletePermission);
  await deleteHeld(call, MANAGED.permission, { workspaceId: caller.workspaceId, which: body.permission });
  return {};
}
