import * as z from "zod";
import { rbacPermission } from "../../../core/permissions/root-key.ts";
import { guardManaged, isRelease } from "../../domain/managed.ts";
import { roleNotFound } from "../../domain/not-found.ts";
import { roleUpdated } from "../../domain/role-events.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { deleteRole as deleteRoleRow, lockRole, updateRole } from "../../store/roles.ts";
import { inTransaction } from "../../store/transaction.ts";
import { onRbac } from "../needed-permissions.ts";
import { Empty } from "../schemas.ts";
import { Role } from "./schemas.ts";

const Body = z.strictObject({ role: Role });
type Body = z.output<typeof Body>;

export const deleteRole = defineProcedure({
  path: "permissions.deleteRole",
  summary: "Delete a role",
  description: "For good: every key that has it loses it, and its name is free again.",
  permissions: [onRbac("delete_role")],
  errors: ["role_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(rbacPermission("delete_role"));
  return inTransaction(deps, async (tx) => {
    const role = await lockRole(tx, { workspaceId, role: body.role });
    if (role === undefined) throw roleNotFound(body.role);
    guardManaged(call, role, `The role ${role.id}`);
    if (isRelease(call)) {
      if (role.manager === null) return {};
      await updateRole(tx, { workspaceId, ...role, manager: null });
      await insertAudit(tx, call, [roleUpdated(role, "Released")]);
      return {};
    }
    await deleteRoleRow(tx, { workspaceId, roleId: role.id });
    await insertAudit(tx, call, [
      {
        event: "role.delete",
        description: `Deleted role ${role.id}`,
        targets: [{ type: "role", id: role.id, name: role.name }],
      },
    ]);
    return {};
  });
}
