import type { PoolClient } from "pg";
import { makeId } from "../../../core/ids.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import type { AuditEvent } from "../../store/audit.ts";
import { listPermissionsById, listPermissionsBySlug, type PermissionRow } from "../../store/permissions.ts";
import { insertRole, listRolesById, listRolesByName, type RoleRow } from "../../store/roles.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/things.ts";
import { permissionNotFound, roleNotFound } from "../refusals/not-found.ts";
import { ensurePermissions } from "./permission-links.ts";

/*
 * Permissions and roles as v1 names them for a key: one by one, by id or by name, each with leave to create it when its name is new. In v2 the
 * procedure says once for all whether they are created.
 */

/** How often something may be deleted between finding and reading it before we give up. */
const ATTEMPTS_MAX = 5;

export interface NamedLink {
  /** Wins over the name. */
  readonly id: string | undefined;
  /** Of a permission its slug. Ignores case. */
  readonly name: string | undefined;
  /** Whether a name that is new is created. */
  readonly create: boolean;
}

export interface Linked<Row> {
  readonly found: readonly Row[];
  /** Of creating what was new. */
  readonly events: readonly AuditEvent[];
}

/**
 * Returns the permissions that the links name, and creates those that may be.
 * @param needed what the root key needs to create one.
 * @throws PublicError 404 for one that is missing, then 403, before anything is written.
 */
export async function permissionsOfLinks<Needed extends NeededPermission>(
  tx: PoolClient,
  call: CallNeeding<unknown, Needed>,
  links: readonly NamedLink[],
  needed: Needed,
): Promise<Linked<PermissionRow>> {
  const { workspaceId } = call.caller;
  const { ids, named } = apart(links);
  const byId = ids.length === 0 ? [] : await listPermissionsById(tx, { workspaceId, ids });
  const missingId = firstMissing(ids, byId);
  if (missingId !== undefined) throw permissionNotFound(missingId);
  const slugs = named.map(({ name }) => name);
  const known = new Set<string>();
  if (slugs.length > 0) {
    for (const { slug } of await listPermissionsBySlug(tx, { workspaceId, slugs })) known.add(slug.toLowerCase());
  }
  const missing = named.find(({ name, create }) => !create && !known.has(name.toLowerCase()));
  if (missing !== undefined) throw permissionNotFound(missing.name);
  const { permissions, events } = await ensurePermissions(tx, call, slugs, { newSlugsNeed: needed });
  return { found: [...byId, ...permissions], events };
}

/**
 * Returns the roles that the links name, and creates those that may be, without permissions.
 * @param needed what the root key needs to create one.
 * @throws PublicError 404 for one that is missing, then 403, before anything is written.
 */
export async function rolesOfLinks<Needed extends NeededPermission>(
  tx: PoolClient,
  call: CallNeeding<unknown, Needed>,
  links: readonly NamedLink[],
  needed: Needed,
): Promise<Linked<RoleRow>> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  const { ids, named } = apart(links);
  const byId = ids.length === 0 ? [] : await listRolesById(tx, { workspaceId, ids });
  const missingId = firstMissing(ids, byId);
  if (missingId !== undefined) throw roleNotFound(missingId);
  const names = named.map(({ name }) => name);
  const kept = new Set(named.filter(({ create }) => !create).map(({ name }) => name));
  const events: AuditEvent[] = [];
  for (let attempt = 0; names.length > 0 && attempt < ATTEMPTS_MAX; attempt++) {
    const asked = await listRolesByName(tx, { workspaceId, names });
    const missing = asked.filter(({ id }) => id === null).map((one) => one.asked);
    const refused = missing.find((name) => kept.has(name));
    if (refused !== undefined) throw roleNotFound(refused);
    if (missing.length === 0) return { found: [...byId, ...asked.filter(isRole)], events };
    call.require(needed);
    // In a fixed order, so that two calls that create the same ones do not deadlock.
    for (const name of missing.toSorted()) {
      const id = makeId("role", deps.randomBytes(16));
      const role = { id, name, description: null, manager: null };
      if (await insertRole(tx, { ...role, workspaceId, createdAt: deps.nowMs() })) {
        events.push(auditEvent(MANAGED.role, role, "Created"));
      }
    }
  }
  if (names.length > 0) throw new Error(`roles could not be made in ${ATTEMPTS_MAX} attempts`);
  return { found: byId, events };
}

/** The ids that the links name, without those that do not exist. */
export async function idsOfPermissionLinks(
  tx: PoolClient,
  { caller }: Pick<CallNeeding<unknown, never>, "caller">,
  links: readonly NamedLink[],
): Promise<ReadonlySet<string>> {
  const { ids, named } = apart(links);
  const slugs = named.map(({ name }) => name);
  const found = await listPermissionsBySlug(tx, { workspaceId: caller.workspaceId, slugs });
  return new Set([...ids, ...found.map(({ id }) => id)]);
}

/** The same for roles. */
export async function idsOfRoleLinks(
  tx: PoolClient,
  { caller }: Pick<CallNeeding<unknown, never>, "caller">,
  links: readonly NamedLink[],
): Promise<ReadonlySet<string>> {
  const { ids, named } = apart(links);
  const names = named.map(({ name }) => name);
  const found = await listRolesByName(tx, { workspaceId: caller.workspaceId, names });
  return new Set([...ids, ...found.filter(isRole).map(({ id }) => id)]);
}

const isRole = <Row extends { readonly id: string | null }>(row: Row): row is Row & { readonly id: string } =>
  row.id !== null;

interface Named {
  readonly name: string;
  readonly create: boolean;
}

function apart(links: readonly NamedLink[]): { readonly ids: readonly string[]; readonly named: readonly Named[] } {
  const ids: string[] = [];
  const named: Named[] = [];
  for (const { id, name, create } of links) {
    if (id !== undefined) ids.push(id);
    else if (name !== undefined) named.push({ name, create });
  }
  return { ids, named };
}

function firstMissing(ids: readonly string[], rows: readonly { readonly id: string }[]): string | undefined {
  const found = new Set(rows.map(({ id }) => id));
  return ids.find((id) => !found.has(id));
}
