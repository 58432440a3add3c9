import type { PoolClient } from "pg";
import type { AuditEvent } from "../../db/audit.ts";
import { listPermissionsById, listPermissionsBySlug, type PermissionRow } from "../../db/permissions.ts";
import { listRolesById, listRolesByName, type RoleRow } from "../../db/roles.ts";
import type { Actor } from "../actor.ts";
import { permissionNotFound, roleNotFound } from "../refusals/refusals.ts";
import { ensurePermissions, ensureRoles, getRolesByName } from "./permission-links.ts";
import type { RequiredPermission } from "./required-permissions.ts";

/*
 * Permissions and roles in v1 requests about a key. Each is given by id or name, with a flag that allows the call to create it. v2 has no
 * such flag: there, the procedure determines whether missing ones are created.
 */

export interface NamedLink {
  /** Id of the object, which takes precedence over the name. */
  readonly id: string | undefined;
  /** Name of a role, or slug of a permission. Case-insensitive. */
  readonly name: string | undefined;
  /** Whether to create the object if it is missing. */
  readonly create: boolean;
}

export interface Linked<Row> {
  readonly found: readonly Row[];
  /** Events of created objects. */
  readonly events: readonly AuditEvent[];
}

/**
 * Returns the permissions to which the links refer, and creates missing ones if their link allows it.
 * @param required permission that the root key needs to create a permission.
 * @throws PublicError before any write: 404 if a permission is missing and its link does not allow creating it, otherwise 403 if the root
 * key lacks `required`.
 */
export async function permissionsOfLinks<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Actor<Required>,
  links: readonly NamedLink[],
  required: Required,
): Promise<Linked<PermissionRow>> {
  const { workspaceId } = actor.caller;
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
  const { permissions, events } = await ensurePermissions(tx, actor, slugs, { newSlugsNeed: required });
  return { found: [...byId, ...permissions], events: [...events] };
}

/**
 * Returns the roles to which the links refer, and creates missing ones, without permissions, if their link allows it.
 * @param required permission that the root key needs to create a role.
 * @throws PublicError before any write: 404 if a role is missing and its link does not allow creating it, otherwise 403 if the root key
 * lacks `required`.
 */
export async function rolesOfLinks<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Actor<Required>,
  links: readonly NamedLink[],
  required: Required,
): Promise<Linked<RoleRow>> {
  const { workspaceId } = actor.caller;
  const { ids, named } = apart(links);
  const byId = ids.length === 0 ? [] : await listRolesById(tx, { workspaceId, ids });
  const missingId = firstMissing(ids, byId);
  if (missingId !== undefined) throw roleNotFound(missingId);
  const kept = named.filter(({ create }) => !create).map(({ name }) => name);
  await getRolesByName(tx, workspaceId, kept);
  const names = named.map(({ name }) => name);
  const { events } = await ensureRoles(tx, actor, names, { newNamesNeed: required });
  return { found: [...byId, ...(await getRolesByName(tx, workspaceId, names))], events: [...events] };
}

/** Returns the ids of the existing permissions to which the links refer. */
export async function idsOfPermissionLinks(
  tx: PoolClient,
  { caller }: Pick<Actor, "caller">,
  links: readonly NamedLink[],
): Promise<ReadonlySet<string>> {
  const { ids, named } = apart(links);
  const slugs = named.map(({ name }) => name);
  const found = await listPermissionsBySlug(tx, { workspaceId: caller.workspaceId, slugs });
  return new Set([...ids, ...found.map(({ id }) => id)]);
}

/** Returns the ids of the existing roles to which the links refer. */
export async function idsOfRoleLinks(
  tx: PoolClient,
  { caller }: Pick<Actor, "caller">,
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
