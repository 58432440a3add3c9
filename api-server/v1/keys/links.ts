import type { PoolClient } from "pg";
import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../../domain/actor.ts";
import {
  adding,
  lockKeyToLink,
  permissionLinks,
  type Relinking,
  relinkKey,
  removing,
  replacing,
  roleLinks,
} from "../../domain/keys/key-links.ts";
import {
  idsOfPermissionLinks,
  idsOfRoleLinks,
  type NamedLink,
  permissionsOfLinks,
  rolesOfLinks,
} from "../../domain/permissions/named-links.ts";
import {
  onRbac,
  type RequiredPermission,
  type RequiredPermissions,
  refusedAsUnauthorized,
} from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure, type V1Procedure } from "../procedure.ts";
import { Empty, KeyId } from "../schemas.ts";
import {
  checkPermissionItems,
  checkRoleItems,
  type Item,
  LinksResponse,
  PermissionItems,
  PermissionItemsWithSlug,
  RoleItems,
  toLink,
  toLinksResponse,
} from "./link-schemas.ts";

/* `keys.addPermissions`, `keys.setPermissions`, `keys.removePermissions`, and the same three for roles. */

/** Links of a key to permissions or to roles. */
interface Sort<Row extends { readonly id: string; readonly name: string }> {
  readonly field: "permissions" | "roles";
  readonly links: Parameters<typeof relinkKey<Row>>[3];
  readonly check: (items: readonly Item[]) => void;
}

const PERMISSIONS = { field: "permissions", links: permissionLinks, check: checkPermissionItems } as const;
const ROLES = { field: "roles", links: roleLinks, check: checkRoleItems } as const;

/** Properties in which the procedures that link permissions or roles to keys differ. */
interface Linking<
  Row extends { readonly id: string; readonly name: string },
  Response extends z.ZodType,
  Permissions extends RequiredPermissions,
> extends Pick<
    V1Procedure<z.ZodType, Response, Permissions>,
    "path" | "summary" | "description" | "permissions" | "errors" | "response"
  > {
  readonly items: z.ZodType<readonly Item[]>;
  /** Permission that every call needs. */
  readonly needed: Permissions[keyof Permissions];
  /** Looks up the permissions or roles in the request, and returns the change. */
  readonly relink: (
    tx: PoolClient,
    actor: Actor<Permissions[keyof Permissions]>,
    links: readonly NamedLink[],
  ) => Promise<Relinking<Row>>;
  readonly respond: (rows: readonly Row[]) => z.input<Response>;
}

function define<
  Row extends { readonly id: string; readonly name: string },
  Response extends z.ZodType,
  const Permissions extends Readonly<Record<string, RequiredPermission>>,
>(
  { field, links, check }: Sort<Row>,
  { items, needed, relink, respond, ...documented }: Linking<Row, Response, Permissions>,
) {
  const input = z.object({ keyId: KeyId, [field]: items }) as unknown as z.ZodType<{ keyId: string }>;
  const itemsOf = (body: object) => (body as Record<typeof field, readonly Item[]>)[field];
  const handle = async (call: Call<{ readonly keyId: string }, Permissions>): Promise<z.input<Response>> => {
    call.require(needed);
    const { keyId } = call.body;
    const named = itemsOf(call.body).map(toLink);
    return inTransaction(call.deps, async (tx) => {
      const key = await lockKeyToLink(tx, call, { keyId, needed: [] });
      return respond(await relinkKey(tx, call, key, links, await relink(tx, call, named)));
    });
  };
  return defineV1Procedure({
    ...documented,
    method: "POST",
    successor: documented.path,
    effect: "change",
    input,
    check: (body) => check(itemsOf(body)),
    handle,
  });
}

const addPermissionToKey = onRbac("add_permission_to_key");
const removePermissionFromKey = onRbac("remove_permission_from_key");
const addRoleToKey = onRbac("add_role_to_key");
const removeRoleFromKey = onRbac("remove_role_from_key");
const createPermission = onRbac("create_permission", "when one is created");
const createRole = onRbac("create_role", "when one is created");

const LINKS = { response: LinksResponse, respond: toLinksResponse };
const NOTHING = { response: Empty, respond: () => ({}) };

/**
 * Permission for `keys.addPermissions` and `keys.addRoles`. If the caller is not allowed to create a missing object, these procedures
 * reject the call as UNAUTHORIZED.
 */
const createPermissionOrUnauthorized = refusedAsUnauthorized(createPermission);

export const addPermissions = define(PERMISSIONS, {
  path: "keys.addPermissions",
  summary: "Add permissions to a key",
  description: "Adds permissions and keeps existing ones. Returns all direct permissions of the key.",
  permissions: { addPermissionToKey, createPermission: createPermissionOrUnauthorized },
  errors: ["key_not_found", "permission_not_found", "managed_by_manifest"],
  items: PermissionItems.min(1),
  needed: addPermissionToKey,
  relink: async (tx, actor, links) => {
    const { found, events } = await permissionsOfLinks(tx, actor, links, createPermissionOrUnauthorized);
    return adding(found, events);
  },
  ...LINKS,
});

export const setPermissions = define(PERMISSIONS, {
  path: "keys.setPermissions",
  summary: "Replace the permissions of a key",
  description: "Replaces all direct permissions of the key and returns them. Permissions from its roles remain.",
  permissions: { addPermissionToKey, createPermission },
  errors: ["key_not_found", "permission_not_found", "managed_by_manifest"],
  items: PermissionItemsWithSlug.min(1),
  needed: addPermissionToKey,
  relink: async (tx, actor, links) => {
    const { found, events } = await permissionsOfLinks(tx, actor, links, createPermission);
    return replacing(found, events);
  },
  ...LINKS,
});

export const removePermissions = define(PERMISSIONS, {
  path: "keys.removePermissions",
  summary: "Remove permissions from a key",
  description:
    "Removes direct permissions of the key. Unknown permissions and those that the key lacks are ignored. Permissions from its roles remain.",
  permissions: { removePermissionFromKey },
  errors: ["key_not_found", "managed_by_manifest"],
  items: PermissionItemsWithSlug.min(1),
  needed: removePermissionFromKey,
  relink: async (tx, actor, links) => removing(await idsOfPermissionLinks(tx, actor, links)),
  ...NOTHING,
});

const rolesToAdd = {
  addRoleToKey,
  createRole: refusedAsUnauthorized(createRole),
  // Also accepted, because earlier releases of v1 required this permission by mistake, and root keys that were created for them have no
  // other.
  createPermission: refusedAsUnauthorized(onRbac("create_permission", "in place of `rbac.*.create_role`")),
};

export const addRoles = define(ROLES, {
  path: "keys.addRoles",
  summary: "Add roles to a key",
  description: "Adds roles and keeps existing ones. Returns all roles of the key.",
  permissions: rolesToAdd,
  errors: ["key_not_found", "role_not_found", "managed_by_manifest"],
  items: RoleItems.min(1),
  needed: addRoleToKey,
  relink: async (tx, actor, links) => {
    const creating = actor.holds(rolesToAdd.createPermission) ? rolesToAdd.createPermission : rolesToAdd.createRole;
    const { found, events } = await rolesOfLinks(tx, actor, links, creating);
    return adding(found, events);
  },
  ...LINKS,
});

export const setRoles = define(ROLES, {
  path: "keys.setRoles",
  summary: "Replace the roles of a key",
  description: "Replaces all roles of the key and returns them. Direct permissions of the key remain.",
  permissions: { addRoleToKey, createRole },
  errors: ["key_not_found", "role_not_found", "managed_by_manifest"],
  items: RoleItems.min(1),
  needed: addRoleToKey,
  relink: async (tx, actor, links) => {
    const { found, events } = await rolesOfLinks(tx, actor, links, createRole);
    return replacing(found, events);
  },
  ...LINKS,
});

export const removeRoles = define(ROLES, {
  path: "keys.removeRoles",
  summary: "Remove roles from a key",
  description: "Removes roles from the key. Unknown roles and those that the key lacks are ignored.",
  permissions: { removeRoleFromKey },
  errors: ["key_not_found", "managed_by_manifest"],
  items: RoleItems.min(1),
  needed: removeRoleFromKey,
  relink: async (tx, actor, links) => removing(await idsOfRoleLinks(tx, actor, links)),
  ...NOTHING,
});
