import * as z from "zod";
import { MANAGED } from "../../domain/managed/things.ts";
import { deleteHeld } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Role } from "./schemas.ts";

const Body = z.strictObject({
  role: Role,
  unlessHeld: z.boolean().default(false).describe("Refuse it while a key has the role."),
});
type Body = z.output<typeof Body>;

const needed = { deleteRole: onRbac("delete_role") };

export const deleteRole = defineProcedure({
  path: "permissions.deleteRole",
  effect: "change",
  summary: "Delete a role",
  description:
    "Every key that has it loses it, and its name is free again. This cannot be undone. With `unlessHeld` it is refused while a key has the role.",
  permissions: needed,
  errors: ["role_not_found", "managed_elsewhere", "protected_resource"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller } = call;
  call.require(needed.deleteRole);
  await deleteHeld(call, MANAGED.role, { workspaceId: caller.workspaceId, which: body.role }, body);
  return {};
}
