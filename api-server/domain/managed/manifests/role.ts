import type { RoleSpec } from "../../../../core/manifests/role.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { listPermissionsOfRole } from "../../../db/permissions.ts";
import { listRolesByName, lockRoleById } from "../../../db/roles.ts";
import { setRolePermissions, updateRole } from "../../permissions/change-role.ts";
import { createRole } from "../../permissions/create-role.ts";
import { areSameNames } from "../../permissions/permission-links.ts";
import {
  type Application,
  type Applied,
  managing,
  type Planned,
  type Transaction,
  withLastManager,
} from "./application.ts";
import { type Owned, requireClaim, requireManaged } from "./claim.ts";
import { differencesBetween } from "./differences.ts";
import { TO_APPLY } from "./permissions.ts";

export interface StoredRole extends Owned {
  readonly name: string;
  readonly description: string | null;
  /** Slugs of the role's permissions. */
  readonly permissions: readonly string[];
}

export type RoleStep = "create" | "update" | "setPermissions";

/**
 * Plans how a manifest changes the stored role, which is the role that it manages or, if there is none, the role with its name. Pure.
 * @throws PublicError 409 if the manifest is not allowed to manage the role.
 */
export function planRole(desired: Application<RoleSpec>, stored: StoredRole | undefined): Planned<RoleStep> {
  const { spec, manager } = desired;
  // An empty description is stored as no description.
  const members = { name: spec.name, description: spec.description || undefined, permissions: spec.permissions };
  if (stored === undefined) {
    requireManaged(desired, "name");
    return { steps: ["create"], changes: differencesBetween(undefined, members) };
  }
  const { name, description } = stored;
  const permissions = areSameNames(stored.permissions, spec.permissions) ? spec.permissions : stored.permissions;
  const changes = differencesBetween({ name, description: description ?? undefined, permissions }, members);
  requireClaim(desired, stored, {
    label: `The role ${name}`,
    field: "name",
    otherwise: "or choose another spec.name",
    isEqual: changes.length === 0,
  });
  const isRenamed = changes.some(({ path }) => path !== "permissions") || stored.manager !== manager;
  return {
    steps: [
      ...(isRenamed ? (["update"] as const) : []),
      ...(permissions === spec.permissions ? [] : (["setPermissions"] as const)),
    ],
    changes,
  };
}

export async function applyRole(transaction: Transaction, desired: Application<RoleSpec>): Promise<Applied> {
  const { actor } = transaction;
  const { name, description, permissions: slugs } = desired.spec;
  actor.require(TO_APPLY.readRole);
  const stored = await readRole(transaction, desired);
  const { steps, changes } = planRole(desired, stored);
  let roleId = stored?.id ?? "";
  for (const step of steps) {
    if (step === "create") {
      actor.require(TO_APPLY.createRole);
      if (slugs.length > 0) actor.require(TO_APPLY.addPermissionToRole);
      roleId = await createRole(actor, {
        name,
        description,
        grants: { slugs, newSlugsNeed: TO_APPLY.createPermission },
      });
    } else if (step === "update") {
      const change = { role: roleId, name, description: description ?? null };
      await updateRole(managing(actor, { adopt: stored?.manager === null }), TO_APPLY.updateRole, change);
    } else {
      actor.require(TO_APPLY.addPermissionToRole);
      actor.require(TO_APPLY.removePermissionFromRole);
      await setRolePermissions(actor, { roleId, slugs, newSlugsNeed: TO_APPLY.createPermission });
    }
  }
  const outcome = stored === undefined ? "created" : steps.length > 0 ? "updated" : "unchanged";
  return { outcome, ids: { roleId }, changes };
}

/** Locks and returns the role that the manifest manages or, if there is none, the role with the desired name. */
async function readRole(
  { tx, actor }: Transaction,
  { manager, spec }: Pick<Application<RoleSpec>, "manager" | "spec">,
): Promise<StoredRole | undefined> {
  const { workspaceId } = actor.caller;
  const own = await findOwn(tx, "role", { workspaceId, manager });
  const [named] = own === undefined ? await listRolesByName(tx, { workspaceId, names: [spec.name] }) : [own];
  if (named === undefined || named.id === null) return undefined;
  const row = await lockRoleById(tx, { workspaceId, roleId: named.id });
  if (row === undefined) return undefined;
  const permissions = await listPermissionsOfRole(tx, { workspaceId, roleId: row.id });
  const role = await withLastManager(tx, { workspaceId, kind: "role" }, row);
  return { ...role, permissions: permissions.map(({ slug }) => slug) };
}
