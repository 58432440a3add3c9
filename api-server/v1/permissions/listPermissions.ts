import * as z from "zod";
import { listPermissions as listRows } from "../../db/permissions.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { PermissionResponse, ROWS_MAX, tooManyRows, toPermissionResponse } from "./schemas.ts";

const required = { readPermission: onRbac("read_permission") };

export const listPermissions = defineV1Procedure({
  path: "permissions.listPermissions",
  method: "GET",
  successor: "permissions.listPermissions",
  effect: "read",
  summary: "List all permissions",
  description:
    "Lists all permissions in the order of their ids. Fails with more than 10,000 permissions; v2 has pages.",
  permissions: required,
  errors: ["precondition_failed"],
  input: z.object({}),
  response: z.array(PermissionResponse),
  handle,
});

async function handle({ caller, deps, require }: Call<unknown, typeof required>): Promise<PermissionResponse[]> {
  require(required.readPermission);
  const page = { workspaceId: caller.workspaceId, cursor: "", rowsMax: ROWS_MAX + 1 };
  const rows = await listRows(deps.db, page);
  if (rows.length > ROWS_MAX) throw tooManyRows("permissions", "permissions.listPermissions");
  return rows.map(toPermissionResponse);
}
