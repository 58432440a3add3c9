import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { Grants, NeededPermission } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import type { AuditEvent } from "../../store/audit.ts";
import { insertRolesForNames } from "../../store/key-imports.ts";
import { insertPermissionsForSlugs, listPermissionsBySlug, type PermissionRow } from "../../store/permissions.ts";
import type { Queryable } from "../../store/queryable.ts";
import { listRolesByName, type RoleRow } from "../../store/roles.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/things.ts";
import { roleNotFound } from "../refusals/not-found.ts";

/** How often a permission may be deleted between finding and reading it before we give up. */
const ATTEMPTS_MAX = 5;

type Acting<Needed extends NeededPermission> = Pick<Call<unknown>, "caller" | "deps"> & Pick<Grants<Needed>, "require">;

export interface EnsuredPermissions {
  /** All requested permissions, sorted by slug, spelt as stored. */
  readonly permissions: readonly PermissionRow[];
  /** `permission.create` for each that this call created; made as they are read, once. */
  readonly events: Iterable<AuditEvent>;
}

/** Slugs are ASCII, so this ignores case exactly as the database does. */
const foldCase = (slug: string): string => slug.toLowerCase();

/** Duplicate slugs, also in another case, count once, in their first spelling. */
function distinctSlugs(slugs: readonly string[]): string[] {
  const byFolded = new Map<string, string>();
  for (const slug of slugs) {
    const folded = foldCase(slug);
    if (!byFolded.has(folded)) byFolded.set(folded, slug);
  }
  return [...byFolded.values()];
}

const missingSlugs = (wanted: readonly string[], permissions: readonly PermissionRow[]): string[] => {
  const found = new Set(permissions.map(({ slug }) => foldCase(slug)));
  return wanted.filter((slug) => !found.has(foldCase(slug)));
};

/**
 * For procedures that must check permissions before anything else.
 * @throws PublicError 403 when one of the slugs is new to the workspace and the root key lacks the permission to create it.
 */
export async function requireForNewSlugs<Needed extends NeededPermission>(
  db: Queryable,
  call: Acting<Needed>,
  slugs: readonly string[],
  needed: Needed,
): Promise<void> {
  const wanted = distinctSlugs(slugs);
  if (wanted.length === 0) return;
  const permissions = await listPermissionsBySlug(db, { workspaceId: call.caller.workspaceId, slugs: wanted });
  if (missingSlugs(wanted, permissions).length > 0) call.require(needed);
}

/**
 * Returns the permissions with these slugs. Missing ones are created, named by their slug. Concurrent callers
 * with the same slugs get the same rows.
 * @param options.newSlugsNeed the permission that a new slug needs; not checked when left out.
 * @throws PublicError 403 before anything is written.
 */
export async function ensurePermissions<Needed extends NeededPermission>(
  tx: PoolClient,
  call: Acting<Needed>,
  slugs: readonly string[],
  options: { readonly newSlugsNeed?: Needed } = {},
): Promise<EnsuredPermissions> {
  const { workspaceId } = call.caller;
  const wanted = distinctSlugs(slugs);
  if (wanted.length === 0) return { permissions: [], events: [] };
  const created: PermissionRow[] = [];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const permissions = await listPermissionsBySlug(tx, { workspaceId, slugs: wanted });
    const missing = missingSlugs(wanted, permissions);
    if (missing.length === 0)
      return {
        permissions,
        events: created.values().map((permission) => auditEvent(MANAGED.permission, permission, "Created")),
      };
    if (options.newSlugsNeed !== undefined) call.require(options.newSlugsNeed);
    const inserted = await insertPermissionsForSlugs(tx, {
      workspaceId,
      createdAt: call.deps.nowMs(),
      permissions: missing.map((slug) => ({ id: makeId("permission", call.deps.randomBytes(16)), slug })),
    });
    for (const permission of inserted) created.push(permission);
  }
  throw new Error(`permissions could not be made in ${ATTEMPTS_MAX} attempts`);
}

/**
 * Returns the roles with these names, ignoring case, sorted by name. Roles are never created implicitly.
 * @throws PublicError 404 when the workspace has no role with one of the names.
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
 * Returns the roles with these names, by the name as it is given; ignoring case. Missing ones are created, without permissions.
 * Concurrent callers with the same names get the same rows.
 * @param options.newNamesNeed the permission that a new name needs; not checked when left out.
 * @throws PublicError 403 before anything is written.
 */
export async function ensureRoles<Needed extends NeededPermission>(
  tx: PoolClient,
  call: Acting<Needed>,
  names: readonly string[],
  options: { readonly newNamesNeed?: Needed } = {},
): Promise<{ readonly roles: ReadonlyMap<string, NamedPart>; readonly events: Iterable<AuditEvent> }> {
  const { workspaceId } = call.caller;
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
    if (options.newNamesNeed !== undefined) call.require(options.newNamesNeed);
    // Of names that differ only in case the database creates one; the next round finds it for all of them.
    const inserted = await insertRolesForNames(tx, {
      workspaceId,
      createdAt: call.deps.nowMs(),
      roles: unknown.map((name) => ({ id: makeId("role", call.deps.randomBytes(16)), name })),
    });
    for (const role of inserted) created.push(role);
  }
  throw new Error(`roles could not be made in ${ATTEMPTS_MAX} attempts`);
}
