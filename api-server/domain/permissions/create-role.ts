import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertRole, insertRolePermissions } from "../../db/roles.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { createOnce } from "../managed/create-once.ts";
import { MANAGED } from "../managed/resources.ts";
import { creatingManager } from "../managed/rules.ts";
import { toStoredDescription } from "./create-permission.ts";
import { ensurePermissions, requireForNewSlugs } from "./permission-links.ts";
import type { RequiredPermission } from "./required-permissions.ts";
import { roleConnected } from "./role-events.ts";

export interface DesiredRole<Required extends RequiredPermission> {
  readonly name: string;
  readonly description: string | undefined;
  /** Slugs of permissions. Missing permissions are created. */
  readonly grants?: { readonly slugs: readonly string[]; readonly newSlugsNeed: Required };
}

/**
 * Creates a role and returns its id. If the call's manager already has a role, returns that role's id.
 * @throws PublicError 403 if a slug is new and the root key is not allowed to create it; 409 if the name exists.
 */
export async function createRole<Required extends RequiredPermission>(
  actor: Actor<Required>,
  { name, description: given, grants }: DesiredRole<Required>,
): Promise<string> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  const manager = creatingManager(actor);
  return inTransaction(deps, async (tx) => {
    if (grants !== undefined) await requireForNewSlugs(tx, actor, grants.slugs, grants.newSlugsNeed);
    const roleId = makeId("role", deps.randomBytes(16));
    const description = toStoredDescription(given);
    // Creates the role before its permissions, so that a call that loses a race for the role creates no permissions.
    const creation = await createOnce(tx, actor, "role", () =>
      insertRole(tx, { workspaceId, id: roleId, name, description, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return creation.id;
    if (creation.outcome === "taken") {
      throw new PublicError("role_already_exists", `A role named ${name} already exists.`);
    }
    const { permissions, events } =
      grants === undefined ? NONE : await ensurePermissions(tx, actor, grants.slugs, grants);
    const role = { id: roleId, name };
    if (permissions.length > 0) {
      await insertRolePermissions(tx, { workspaceId, roleId, permissionIds: permissions.map(({ id }) => id) });
    }
    await insertAudit(tx, actor, [
      auditEvent(MANAGED.role, role, "Created"),
      ...events,
      ...permissions.map((permission) => roleConnected(role, permission)),
    ]);
    return roleId;
  });
}

const NONE = { permissions: [], events: [] };
