import * as z from "zod";
import { listRoles as listRows } from "../../db/roles.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ROWS_MAX, RoleResponse, tooManyRows, toRoleResponse } from "./schemas.ts";

const required = { readRole: onRbac("read_role") };

export const listRoles = defineV1Procedure({
  path: "permissions.listRoles",
  method: "GET",
  successor: "permissions.listRoles",
  effect: "read",
  summary: "List the roles",
  description: "Lists all roles in the order of their ids. Fails with more than 10,000 roles; v2 has pages.",
  permissions: required,
  errors: ["precondition_failed"],
  input: z.object({}),
  response: z.array(RoleResponse),
  handle,
});

async function handle({ caller, deps, require }: Call<unknown, typeof required>): Promise<RoleResponse[]> {
  require(required.readRole);
  const page = { workspaceId: caller.workspaceId, cursor: "", rowsMax: ROWS_MAX + 1 };
  const rows = await listRows(deps.db, page);
  if (rows.length > ROWS_MAX) throw tooManyRows("roles", "permissions.listRoles");
  return rows.map(toRoleResponse);
}
