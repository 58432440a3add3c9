import { isDeepStrictEqual } from "node:util";
import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import type { AuditEvent } from "../../db/audit.ts";
import { insertRolesForNames } from "../../db/key-imports.ts";
import { insertPermissionsForSlugs, listPermissionsBySlug, type PermissionRow } from "../../db/permissions.ts";
import { listRolesByName, type RoleRow } from "../../db/roles.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { roleNotFound } from "../refusals/refusals.ts";
import type { Grants, RequiredPermission } from "./required-permissions.ts";

/** Maximum number of attempts. Several are needed if a permission is deleted between two steps of a call. */
const ATTEMPTS_MAX = 5;

type Acting<Required extends RequiredPermission> = Pick<Actor, "caller" | "deps"> & Pick<Grants<Required>, "require">;

export interface EnsuredPermissions {
  /** All requested permissions, sorted by slug, in the stored spelling. */
  readonly permissions: readonly PermissionRow[];
  /**
   * Event `permission.create` of each permission that this call created. The events are generated lazily, so they can be iterated only
   * once.
   */
  readonly events: Iterable<AuditEvent>;
}

/** Folds the case of ASCII slugs exactly as the database does. */
const foldCase = (slug: string): string => slug.toLowerCase();

/**
 * Returns whether both lists contain the same slugs or role names. Ignores their order and differences in spelling that the database
 * ignores.
 */
export function areSameNames(a: readonly string[], b: readonly string[]): boolean {
  return isDeepStrictEqual(new Set(a.map(foldCase)), new Set(b.map(foldCase)));
}

/** Returns the distinct slugs. Slugs that differ only in case count once, in their first spelling. */
function distinctSlugs(slugs: readonly string[]): string[] {
  const byFolded = new Map<string, string>();
  for (const slug of slugs) {
    const folded = foldCase(slug);
    if (!byFolded.has(folded)) byFolded.set(folded, slug);
  }
  return [...byFolded.values()];
}

const missingSlugs = (requested: readonly string[], permissions: readonly PermissionRow[]): string[] => {
  const found = new Set(permissions.map(({ slug }) => foldCase(slug)));
  return requested.filter((slug) => !found.has(foldCase(slug)));
};

/**
 * Checks, before any write, that the root key is allowed to create a permission for each new slug.
 * @throws PublicError 403 if one of the slugs is new to the workspace and the root key lacks the permission to create it.
 */
export async function requireForNewSlugs<Required extends RequiredPermission>(
  db: Queryable,
  actor: Acting<Required>,
  slugs: readonly string[],
  required: Required,
): Promise<void> {
  const requested = distinctSlugs(slugs);
  if (requested.length === 0) return;
  const permissions = await listPermissionsBySlug(db, { workspaceId: actor.caller.workspaceId, slugs: requested });
  if (missingSlugs(requested, permissions).length > 0) actor.require(required);
}

/**
 * Returns the permissions with these slugs. Missing ones are created, and named after their slugs. Concurrent callers with the same slugs
 * get the same rows.
 * @param options.newSlugsNeed permission that a new slug needs. Default: not checked.
 * @throws PublicError 403 before any write.
 */
export async function ensurePermissions<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Acting<Required>,
  slugs: readonly string[],
  options: { readonly newSlugsNeed?: Required } = {},
): Promise<EnsuredPermissions> {
  const { workspaceId } = actor.caller;
  const requested = distinctSlugs(slugs);
  if (requested.length === 0) return { permissions: [], events: [] };
  const created: PermissionRow[] = [];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const permissions = await listPermissionsBySlug(tx, { workspaceId, slugs: requested });
    const missing = missingSlugs(requested, permissions);
    if (missing.length === 0)
      return {
        permissions,
        events: created.values().map((permission) => auditEvent(MANAGED.permission, permission, "Created")),
      };
    if (options.newSlugsNeed !== undefined) actor.require(options.newSlugsNeed);
    const inserted = await insertPermissionsForSlugs(tx, {
      workspaceId,
      createdAt: actor.deps.nowMs(),
      permissions: missing.map((slug) => ({ id: makeId("permission", actor.deps.randomBytes(16)), slug })),
    });
    for (const permission of inserted) created.push(permission);
  }
  throw new Error(`permissions could not be made in ${ATTEMPTS_MAX} attempts`);
}

/**
 * Returns the roles with these names, ignoring case, sorted by name. Roles are never created implicitly.
 * @throws PublicError 404 if the workspace has no role with one of the names.
 */
export async function getRolesByName(db: Queryable, workspaceId: string, names: readonly string[]): Promise<RoleRow[]> {
  if (names.length === 0) return [];
  const roles = new Map<string, RoleRow>();
  for (const { asked, ...role } of await listRolesByName(db, { workspaceId, names })) {
    if (role.id === null) throw roleNotFound(asked);
    roles.set(role.id, role);
  }
  return [...roles.values()];
}

export interface NamedPart {
  readonly id: string;
  readonly name: string;
}

/**
 * Returns the roles with the requested names, ignoring case. Missing roles are created, without permissions. Concurrent callers with the
 * same names get the same rows.
 * @param options.newNamesNeed permission that a new name needs. Default: not checked.
 * @throws PublicError 403 before any write.
 */
export async function ensureRoles<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Acting<Required>,
  names: readonly string[],
  options: { readonly newNamesNeed?: Required } = {},
): Promise<{ readonly roles: ReadonlyMap<string, NamedPart>; readonly events: Iterable<AuditEvent> }> {
  const { workspaceId } = actor.caller;
  const roles = new Map<string, NamedPart>();
  const created: { readonly id: string; readonly name: string }[] = [];
  const events = created.values().map((role) => auditEvent(MANAGED.role, role, "Created"));
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const missing = names.filter((name) => !roles.has(name));
    if (missing.length === 0) return { roles, events };
    const asked = await listRolesByName(tx, { workspaceId, names: missing });
    for (const row of asked) if (row.id !== null) roles.set(row.asked, { id: row.id, name: row.name });
    const unknown = missing.filter((name) => !roles.has(name));
    if (unknown.length === 0) return { roles, events };
    if (options.newNamesNeed !== undefined) actor.require(options.newNamesNeed);
    // Of several names that differ only in case, the database creates just one role. The next iteration finds it for all of these names.
    const inserted = await insertRolesForNames(tx, {
      workspaceId,
      createdAt: actor.deps.nowMs(),
      roles: unknown.map((name) => ({ id: makeId("role", actor.deps.randomBytes(16)), name })),
    });
    for (const role of inserted) created.push(role);
  }
  throw new Error(`roles could not be made in ${ATTEMPTS_MAX} attempts`);
}
