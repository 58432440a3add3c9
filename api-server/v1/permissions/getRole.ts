import * as z from "zod";
import { findRole } from "../../db/roles.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { roleNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { RoleId, RoleResponse, toRoleResponse } from "./schemas.ts";

const Query = z.object({ roleId: RoleId });
type Query = z.output<typeof Query>;

const required = { readRole: onRbac("read_role") };

export const getRole = defineV1Procedure({
  path: "permissions.getRole",
  method: "GET",
  successor: "permissions.getRole",
  effect: "read",
  summary: "Read a role",
  description: "Reads a role by its id.",
  permissions: required,
  errors: ["role_not_found"],
  input: Query,
  response: RoleResponse,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Query, typeof required>): Promise<RoleResponse> {
  require(required.readRole);
  const { roleId } = body;
  const row = await findRole(deps.db, { workspaceId: caller.workspaceId, role: roleId });
  // `findRole` also finds roles by name, but this procedure accepts only ids.
  if (row?.id !== roleId) throw roleNotFound(roleId);
  return toRoleResponse(row);
}
