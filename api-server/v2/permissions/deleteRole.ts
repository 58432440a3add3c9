import * as z from "zod";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { takeFromManyHolders } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { Role } from "./schemas.ts";

const Body = z.strictObject({ role: Role });
type Body = z.output<typeof Body>;

const needed = { deleteRole: onRbac("delete_role") };

export const deleteRole = defineProcedure({
  path: "permissions.deleteRole",
  effect: "change",
  summary: "Delete a role",
  description: "Every key that has it loses it, and its name is free again. This cannot be undone.",
  permissions: needed,
  errors: ["role_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  call.require(needed.deleteRole);
  const ref = { workspaceId: caller.workspaceId, which: body.role };
  await takeFromManyHolders(call, MANAGED.role, ref);
  await inTransaction(deps, async (tx) => {
    await deleteManaged(tx, call, MANAGED.role, await lockManaged(tx, MANAGED.role, ref));
  });
  return {};
}
