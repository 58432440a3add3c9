import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { insertAudit } from "../../db/audit.ts";
import { listPermissionsOfRole, type PermissionRow } from "../../db/permissions.ts";
import { deleteRolePermissions, insertRolePermissions, lockRoleById, type RoleRow } from "../../db/roles.ts";
import { inTransaction } from "../../db/transaction.ts";
import { handOver } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { guardManaged } from "../../domain/managed/rules.ts";
import { ensurePermissions, requireForNewSlugs } from "../../domain/permissions/permission-links.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { roleConnected, roleDisconnected } from "../../domain/permissions/role-events.ts";
import { roleNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Slug } from "../schemas.ts";
import { PermissionOut, SLUGS_MAX, toPermissionOut } from "./schemas.ts";

const Body = z.strictObject({
  roleId: z
    .string()
    .min(3)
    .max(255)
    .regex(/^[a-zA-Z0-9_-]+$/)
    .describe("Id of the role; names are not accepted.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  permissions: z
    .array(Slug)
    .max(SLUGS_MAX)
    .describe("Slugs of all permissions of the role; missing permissions are created."),
  expected: z
    .array(Slug)
    .max(SLUGS_MAX)
    .optional()
    .describe(
      "What the role grants as the caller read it. When it grants anything else by now, nothing is changed: 409.",
    )
    .meta({ "x-postern-addition": true }),
});
type Body = z.output<typeof Body>;

const Data = z.array(PermissionOut);

const required = {
  addPermissionToRole: onRbac("add_permission_to_role"),
  removePermissionFromRole: onRbac("remove_permission_from_role"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const setRolePermissions = defineProcedure({
  path: "permissions.setRolePermissions",
  effect: "change",
  summary: "Replace the permissions of a role",
  description:
    "The role then grants exactly these permissions; `[]` removes all. Returns them, in the order of their slugs.",
  permissions: required,
  errors: ["role_not_found", "role_changed", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<PermissionOut[]> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { roleId, permissions: slugs, expected } = body;
  call.require(required.addPermissionToRole);
  call.require(required.removePermissionFromRole);
  const newSlugsNeed = required.createPermission;
  return inTransaction(deps, async (tx) => {
    // Locks the role, so that concurrent calls for it run one at a time and do not mix their results.
    const role = await lockRoleById(tx, { workspaceId, roleId });
    if (role === undefined) throw roleNotFound(roleId);
    await requireForNewSlugs(tx, call, slugs, newSlugsNeed);
    const manager = guardManaged(call, MANAGED.role, role);
    const before = await listPermissionsOfRole(tx, { workspaceId, roleId });
    if (expected !== undefined) requireUnchanged(role, before, expected);
    const { permissions, events } = await ensurePermissions(tx, call, slugs, { newSlugsNeed });

    const idsBefore = new Set(before.map(({ id }) => id));
    const idsAfter = new Set(permissions.map(({ id }) => id));
    const added = permissions.filter(({ id }) => !idsBefore.has(id));
    const removed = before.filter(({ id }) => !idsAfter.has(id));

    const handedOver = await handOver(tx, call, MANAGED.role, role, manager);
    if (removed.length > 0) {
      await deleteRolePermissions(tx, { workspaceId, roleId, permissionIds: removed.map(({ id }) => id) });
    }
    if (added.length > 0) {
      await insertRolePermissions(tx, { workspaceId, roleId, permissionIds: added.map(({ id }) => id) });
    }
    await insertAudit(tx, call, [
      ...handedOver,
      ...removed.map((permission) => roleDisconnected(role, permission)),
      ...events,
      ...added.map((permission) => roleConnected(role, permission)),
    ]);
    return permissions.map(toPermissionOut);
  });
}

/** @throws PublicError 409 `role_changed` if the locked role no longer grants exactly the permissions that the caller expects. */
function requireUnchanged({ id }: RoleRow, granted: readonly PermissionRow[], expected: readonly string[]): void {
  const folded = new Set(expected.map((slug) => slug.toLowerCase()));
  const isSame = granted.length === folded.size && granted.every(({ slug }) => folded.has(slug.toLowerCase()));
  if (isSame) return;
  throw new PublicError("role_changed", `The role ${id} was changed: it no longer grants the expected permissions.`);
}
