import * as z from "zod";
import { updateRole as change } from "../../domain/permissions/change-role.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Description, NewRoleName, Role } from "./schemas.ts";

const Body = z.strictObject({
  role: Role,
  name: NewRoleName.optional().describe("New name. If omitted, the name does not change."),
  description: Description.nullable()
    .optional()
    .describe("New description; null removes it. If omitted, it does not change."),
});
type Body = z.output<typeof Body>;

const required = { updateRole: onRbac("update_role") };

export const updateRole = defineProcedure({
  path: "permissions.updateRole",
  effect: "change",
  summary: "Change a role",
  description:
    "Changes the name or description. With `Postern-Adopt: true`, an unmanaged role becomes managed by the caller.",
  permissions: required,
  errors: ["role_not_found", "role_already_exists", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  await change(call, required.updateRole, call.body);
  return {};
}
