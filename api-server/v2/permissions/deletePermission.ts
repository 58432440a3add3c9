import * as z from "zod";
import { deleteOrRelease, guardManaged, isRemoval } from "../../domain/managed/rules.ts";
import { takeFromManyHolders } from "../../domain/many-holders.ts";
import { permissionNotFound } from "../../domain/not-found.ts";
import { permissionDeleted, permissionUpdated } from "../../domain/permission-events.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import {
  deletePermission as deletePermissionRow,
  findPermission,
  lockPermission,
  updatePermission,
} from "../../store/permissions.ts";
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
  description: "For good: every key and every role that has it loses it, and its slug is free again.",
  permissions: needed,
  errors: ["permission_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(needed.deletePermission);
  const found = await findPermission(deps.db, { workspaceId, permission: body.permission });
  if (found === undefined) throw permissionNotFound(body.permission);
  guardManaged(call, found, `The permission ${found.id}`);
  if (isRemoval(call)) await takeFromManyHolders(deps, { workspaceId, kind: "permission", id: found.id });
  await inTransaction(deps, async (tx) => {
    const permission = await lockPermission(tx, { workspaceId, permission: body.permission });
    if (permission === undefined) throw permissionNotFound(body.permission);
    await deleteOrRelease(call, permission, `The permission ${permission.id}`, {
      remove: async () => {
        await deletePermissionRow(tx, { workspaceId, permissionId: permission.id });
        await insertAudit(tx, call, [permissionDeleted(permission)]);
      },
      release: async () => {
        await updatePermission(tx, { workspaceId, ...permission, manager: null });
        await insertAudit(tx, call, [permissionUpdated(permission, "Released")]);
      },
    });
  });
  return {};
}
