import type { PoolClient } from "pg";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import type { AuditEvent } from "../../store/audit.ts";
import { listPermissionsById, listPermissionsBySlug, type PermissionRow } from "../../store/permissions.ts";
import { listRolesById, listRolesByName, type RoleRow } from "../../store/roles.ts";
import { permissionNotFound, roleNotFound } from "../refusals/not-found.ts";
import { ensurePermissions, ensureRoles, getRolesByName } from "./permission-links.ts";

/*
 * Permissions and roles as v1 names them for a key: one by one, by id or by name, each with leave to create it when its name is new. In v2 the
 * procedure says once for all whether they are created.
 */

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
  const kept = named.filter(({ create }) => !create).map(({ name }) => name);
  const found = kept.length === 0 ? [] : await listPermissionsBySlug(tx, { workspaceId, slugs: kept });
  const known = new Set(found.map(({ slug }) => slug.toLowerCase()));
  const missing = kept.find((name) => !known.has(name.toLowerCase()));
  if (missing !== undefined) throw permissionNotFound(missing);
  const slugs = named.map(({ name }) => name);
  const { permissions, events } = await ensurePermissions(tx, call, slugs, { newSlugsNeed: needed });
  return { found: [...byId, ...permissions], events: [...events] };
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
  const { workspaceId } = call.caller;
  const { ids, named } = apart(links);
  const byId = ids.length === 0 ? [] : await listRolesById(tx, { workspaceId, ids });
  const missingId = firstMissing(ids, byId);
  if (missingId !== undefined) throw roleNotFound(missingId);
  const kept = named.filter(({ create }) => !create).map(({ name }) => name);
  await getRolesByName(tx, workspaceId, kept);
  const names = named.map(({ name }) => name);
  const { events } = await ensureRoles(tx, call, names, { newNamesNeed: needed });
  return { found: [...byId, ...(await getRolesByName(tx, workspaceId, names))], events: [...events] };
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
