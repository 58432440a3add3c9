import { PublicError } from "../../../core/errors.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { listPermissionsOfRole, type PermissionRow } from "../../db/permissions.ts";
import {
  deleteRolePermissions,
  insertRolePermissions,
  lockRoleById,
  type RoleRow,
  updateRole as updateRoleRow,
} from "../../db/roles.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent, handOver, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, guardManaged } from "../managed/rules.ts";
import { roleNotFound } from "../refusals/refusals.ts";
import { toStoredDescription } from "./create-permission.ts";
import { areSameNames, ensurePermissions, requireForNewSlugs } from "./permission-links.ts";
import type { RequiredPermission } from "./required-permissions.ts";
import { roleConnected, roleDisconnected } from "./role-events.ts";

export interface RoleChange {
  /** Id or name of the role. */
  readonly role: string;
  /** New name; `undefined` leaves it unchanged. */
  readonly name?: string | undefined;
  /** New description; `null` removes it, `undefined` leaves it unchanged. */
  readonly description?: string | null | undefined;
}

/**
 * Changes the name, description or manager of a role.
 * @throws PublicError 404, 403, 409 if another manager has the role or the name is taken.
 */
export async function updateRole<Required extends RequiredPermission>(
  actor: Actor<Required>,
  required: Required,
  { role, name, description }: RoleChange,
): Promise<void> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  await inTransaction(deps, async (tx) => {
    const current = await lockManaged(tx, MANAGED.role, { workspaceId, which: role });
    actor.require(required);
    const requested: RoleRow = {
      id: current.id,
      name: name ?? current.name,
      description: description === undefined ? current.description : toStoredDescription(description),
      manager: guardManaged(actor, MANAGED.role, current),
    };
    const isSame =
      requested.name === current.name &&
      requested.description === current.description &&
      requested.manager === current.manager;
    if (isSame) return;
    await refusingTakenName(requested.name, () =>
      adopting(actor, MANAGED.role, () => updateRoleRow(tx, { workspaceId, ...requested })),
    );
    const fields = ({ name, description, manager }: RoleRow) => ({ name, description, manager });
    const change = changeOf(fields(current), fields(requested));
    await insertAudit(tx, actor, [{ ...auditEvent(MANAGED.role, requested, "Updated"), ...change }]);
  });
}

/** Runs `work`. Throws PublicError 409 instead of the database's error if the name is taken. */
async function refusingTakenName<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUniqueViolation(error, "roles_name")) throw error;
    throw new PublicError("role_already_exists", `A role named ${name} already exists.`, { cause: error });
  }
}

export interface RoleGrants<Required extends RequiredPermission> {
  readonly roleId: string;
  /** Slugs of all permissions of the role; missing permissions are created. */
  readonly slugs: readonly string[];
  readonly newSlugsNeed: Required;
  /** Slugs of exactly the permissions that the role must grant before the change; `undefined` skips this check. */
  readonly expected?: readonly string[] | undefined;
}

/**
 * Replaces the permissions of a role and returns them, sorted by slug.
 * @throws PublicError 404, 403 for a new slug, 409 if another manager has the role or it does not grant the expected permissions.
 */
export async function setRolePermissions<Required extends RequiredPermission>(
  actor: Actor<Required>,
  { roleId, slugs, newSlugsNeed, expected }: RoleGrants<Required>,
): Promise<readonly PermissionRow[]> {
  const { caller, deps } = actor;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    // Locks the role. Concurrent calls for the role run one at a time, so their results do not mix.
    const role = await lockRoleById(tx, { workspaceId, roleId });
    if (role === undefined) throw roleNotFound(roleId);
    await requireForNewSlugs(tx, actor, slugs, newSlugsNeed);
    const manager = guardManaged(actor, MANAGED.role, role);
    const before = await listPermissionsOfRole(tx, { workspaceId, roleId });
    if (expected !== undefined) requireUnchanged(role, before, expected);
    const { permissions, events } = await ensurePermissions(tx, actor, slugs, { newSlugsNeed });

    const idsBefore = new Set(before.map(({ id }) => id));
    const idsAfter = new Set(permissions.map(({ id }) => id));
    const added = permissions.filter(({ id }) => !idsBefore.has(id));
    const removed = before.filter(({ id }) => !idsAfter.has(id));

    const handedOver = await handOver(tx, actor, MANAGED.role, role, manager);
    if (removed.length > 0) {
      await deleteRolePermissions(tx, { workspaceId, roleId, permissionIds: removed.map(({ id }) => id) });
    }
    if (added.length > 0) {
      await insertRolePermissions(tx, { workspaceId, roleId, permissionIds: added.map(({ id }) => id) });
    }
    await insertAudit(tx, actor, [
      ...handedOver,
      ...removed.map((permission) => roleDisconnected(role, permission)),
      ...events,
      ...added.map((permission) => roleConnected(role, permission)),
    ]);
    return permissions;
  });
}

/** @throws PublicError 409 `role_changed` if the locked role no longer grants exactly the permissions that the caller expects. */
function requireUnchanged({ id }: RoleRow, granted: readonly PermissionRow[], expected: readonly string[]): void {
  const slugs = granted.map(({ slug }) => slug);
  if (areSameNames(slugs, expected)) return;
  throw new PublicError("role_changed", `The role ${id} was changed: it no longer grants the expected permissions.`);
}
