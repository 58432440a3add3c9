import * as z from "zod";
import { findPermission } from "../../db/permissions.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { permissionNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { PermissionId, PermissionResponse, toPermissionResponse } from "./schemas.ts";

const Query = z.object({ permissionId: PermissionId });
type Query = z.output<typeof Query>;

const required = { readPermission: onRbac("read_permission") };

export const getPermission = defineV1Procedure({
  path: "permissions.getPermission",
  method: "GET",
  successor: "permissions.getPermission",
  effect: "read",
  summary: "Read a permission",
  description: "Reads a permission by its id.",
  permissions: required,
  errors: ["permission_not_found"],
  input: Query,
  response: PermissionResponse,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Query, typeof required>): Promise<PermissionResponse> {
  require(required.readPermission);
  const { permissionId } = body;
  const row = await findPermission(deps.db, { workspaceId: caller.workspaceId, permission: permissionId });
  // `findPermission` also finds permissions by slug, but this procedure accepts only ids.
  if (row?.id !== permissionId) throw permissionNotFound(permissionId);
  return toPermissionResponse(row);
}
