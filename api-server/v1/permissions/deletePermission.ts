import * as z from "zod";
import { findPermission } from "../../db/permissions.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { permissionNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty } from "../schemas.ts";
import { PermissionId } from "./schemas.ts";

const Body = z.object({ permissionId: PermissionId });
type Body = z.output<typeof Body>;

const required = { deletePermission: onRbac("delete_permission") };

export const deletePermission = defineV1Procedure({
  path: "permissions.deletePermission",
  method: "POST",
  successor: "permissions.deletePermission",
  effect: "change",
  summary: "Delete a permission",
  description: "Removes the permission from all keys and roles. Its slug can be reused. The deletion cannot be undone.",
  permissions: required,
  errors: ["permission_not_found", "managed_by_manifest"],
  input: Body,
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  call.require(required.deletePermission);
  const { permissionId } = body;
  const { workspaceId } = caller;
  const row = await findPermission(deps.db, { workspaceId, permission: permissionId });
  // `findPermission` also finds permissions by slug, but this procedure accepts only ids.
  if (row?.id !== permissionId) throw permissionNotFound(permissionId);
  await deleteHeld(call, MANAGED.permission, { workspaceId, which: permissionId });
  return {};
}
