import * as z from "zod";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { takeFromManyHolders } from "../../domain/permissions/many-holders.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Empty } from "../schemas.ts";
import { Permission } from "./schemas.ts";

const Body = z.strictObject({ permission: Permission });
type Body = z.output<typeof Body>;

const needed = { deletePermission: onRbac("delete_permission") };

export const deletePermission = defineProcedure({
  path: "permissions.deletePermission",
  effect: "change",
  summary: "Delete a permission",
  description: "Every key and every role that has it loses it, and its slug is free again. This cannot be undone.",
  permissions: needed,
  errors: ["permission_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  call.require(needed.deletePermission);
  const ref = { workspaceId: caller.workspaceId, which: body.permission };
  await takeFromManyHolders(call, MANAGED.permission, ref);
  await inTransaction(deps, async (tx) => {
    await deleteManaged(tx, call, MANAGED.permission, await lockManaged(tx, MANAGED.permission, ref));
  });
  return {};
}
