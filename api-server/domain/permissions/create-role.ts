import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { insertRole, insertRolePermissions } from "../../store/roles.ts";
import { inTransaction } from "../../store/transaction.ts";
import { auditEvent } from "../managed/changes.ts";
import { createOnce } from "../managed/create-once.ts";
import { creatingManager } from "../managed/rules.ts";
import { MANAGED } from "../managed/things.ts";
import { ensurePermissions, requireForNewSlugs } from "./permission-links.ts";
import { roleConnected } from "./role-events.ts";
import { toStoredDescription } from "./stored-description.ts";

export interface WantedRole<Needed extends NeededPermission> {
  readonly name: string;
  readonly description: string | undefined;
  /** Permissions by slug; missing ones are created. */
  readonly grants?: { readonly slugs: readonly string[]; readonly newSlugsNeed: Needed };
}

/**
 * Creates a role and returns its id; that of the existing one when the call's manager has one already.
 * @throws PublicError 403 when a slug is new and the root key may not create it; 409 when the name is taken.
 */
export async function createRole<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  { name, description: given, grants }: WantedRole<Needed>,
): Promise<string> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const manager = creatingManager(call);
  return inTransaction(deps, async (tx) => {
    if (grants !== undefined) await requireForNewSlugs(tx, call, grants.slugs, grants.newSlugsNeed);
    const roleId = makeId("role", deps.randomBytes(16));
    const description = toStoredDescription(given);
    // The role is created before its permissions, so that a concurrent caller that fails leaves none behind.
    const creation = await createOnce(tx, call, "role", () =>
      insertRole(tx, { workspaceId, id: roleId, name, description, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return creation.id;
    if (creation.outcome === "taken") {
      throw new PublicError("role_already_exists", `There is a role named ${name} already.`);
    }
    const { permissions, events } =
      grants === undefined ? NONE : await ensurePermissions(tx, call, grants.slugs, grants);
    const role = { id: roleId, name };
    if (permissions.length > 0) {
      await insertRolePermissions(tx, { workspaceId, roleId, permissionIds: permissions.map(({ id }) => id) });
    }
    await insertAudit(tx, call, [
      auditEvent(MANAGED.role, role, "Created"),
      ...events,
      ...permissions.map((permission) => roleConnected(role, permission)),
    ]);
    return roleId;
  });
}

const NONE = { permissions: [], events: [] };
