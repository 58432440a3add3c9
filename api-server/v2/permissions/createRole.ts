import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { auditEvent } from "../../domain/managed/changes.ts";
import { createOnce } from "../../domain/managed/create-once.ts";
import { creatingManager } from "../../domain/managed/rules.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { ensurePermissions, requireForNewSlugs } from "../../domain/permissions/permission-links.ts";
import { roleConnected } from "../../domain/permissions/role-events.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { insertRole, insertRolePermissions } from "../../store/roles.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Slug } from "../schemas.ts";
import { Description, NewRoleName, SLUGS_MAX, toStoredDescription } from "./schemas.ts";

const Body = z.strictObject({
  name: NewRoleName,
  description: Description.optional(),
  permissions: z
    .array(Slug)
    .max(SLUGS_MAX)
    .optional()
    .describe("Slugs; permissions that do not exist yet are created."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  roleId: z
    .string()
    .describe("Id of the role.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
});
type Data = z.input<typeof Data>;

const needed = {
  createRole: onRbac("create_role"),
  addPermissionToRole: onRbac("add_permission_to_role", "with `permissions`"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const createRole = defineProcedure({
  path: "permissions.createRole",
  effect: "change",
  summary: "Create a role",
  description:
    "A role grants its permissions to every key that has it. With `Postern-Manager`, the call can be repeated safely.",
  permissions: needed,
  errors: ["role_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { name, permissions: slugs = [] } = body;
  call.require(needed.createRole);
  if (slugs.length > 0) call.require(needed.addPermissionToRole);
  const manager = creatingManager(call);
  return inTransaction(deps, async (tx) => {
    await requireForNewSlugs(tx, call, slugs, needed.createPermission);
    const roleId = makeId("role", deps.randomBytes(16));
    const description = toStoredDescription(body.description);
    // The role is created before its permissions, so that a concurrent caller that fails leaves none behind.
    const creation = await createOnce(tx, call, "role", () =>
      insertRole(tx, { workspaceId, id: roleId, name, description, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return { roleId: creation.id };
    if (creation.outcome === "taken") {
      throw new PublicError("role_already_exists", `There is a role named ${name} already.`);
    }
    const { permissions, events } = await ensurePermissions(tx, call, slugs, {
      newSlugsNeed: needed.createPermission,
    });
    const role = { id: roleId, name };
    if (permissions.length > 0) {
      await insertRolePermissions(tx, { workspaceId, roleId, permissionIds: permissions.map(({ id }) => id) });
    }
    await insertAudit(tx, call, [
      auditEvent(MANAGED.role, role, "Created"),
      ...events,
      ...permissions.map((permission) => roleConnected(role, permission)),
    ]);
    return { roleId };
  });
}
