import * as z from "zod";
import { deleteOrRelease, guardManaged, isRemoval } from "../../domain/managed/rules.ts";
import { takeFromManyHolders } from "../../domain/many-holders.ts";
import { roleNotFound } from "../../domain/not-found.ts";
import { roleDeleted, roleUpdated } from "../../domain/role-events.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { deleteRole as deleteRoleRow, findRole, lockRole, updateRole } from "../../store/roles.ts";
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
  description: "For good: every key that has it loses it, and its name is free again.",
  permissions: needed,
  errors: ["role_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(needed.deleteRole);
  const found = await findRole(deps.db, { workspaceId, role: body.role });
  if (found === undefined) throw roleNotFound(body.role);
  guardManaged(call, found, `The role ${found.id}`);
  if (isRemoval(call)) await takeFromManyHolders(deps, { workspaceId, kind: "role", id: found.id });
  await inTransaction(deps, async (tx) => {
    const role = await lockRole(tx, { workspaceId, role: body.role });
    if (role === undefined) throw roleNotFound(body.role);
    await deleteOrRelease(call, role, `The role ${role.id}`, {
      remove: async () => {
        await deleteRoleRow(tx, { workspaceId, roleId: role.id });
        await insertAudit(tx, call, [roleDeleted(role)]);
      },
      release: async () => {
        await updateRole(tx, { workspaceId, ...role, manager: null });
        await insertAudit(tx, call, [roleUpdated(role, "Released")]);
      },
    });
  });
  return {};
}
