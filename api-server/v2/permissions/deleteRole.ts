import * as z from "zod";
import { MANAGED } from "../../domain/managed/resources.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Role } from "./schemas.ts";

const Body = z.strictObject({
  role: Role,
  onlyIfUnused: z.boolean().default(false).describe("Whether to reject the deletion while a key has the role."),
});
type Body = z.output<typeof Body>;

const required = { deleteRole: onRbac("delete_role") };

export const deleteRole = defineProcedure({
  path: "permissions.deleteRole",
  effect: "change",
  summary: "Delete a role",
  description:
    "Removes the role from all keys. Its name can be reused. The deletion cannot be undone. With `onlyIfUnused`, the call is rejected while a key has the role.",
  permissions: required,
  errors: ["role_not_found", "managed_by_manifest", "protected_resource"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller } = call;
  call.require(required.deleteRole);
  await deleteHeld(call, MANAGED.role, { workspaceId: caller.workspaceId, which: body.role }, body);
  return {};
}
