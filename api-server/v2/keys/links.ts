import type { PoolClient } from "pg";
import * as z from "zod";
import { listPermissionsByIdOrSlug, type PermissionRow } from "../../db/permissions.ts";
import type { RoleRow } from "../../db/roles.ts";
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
import { ensurePermissions, getRolesByName } from "../../domain/permissions/permission-links.ts";
import { onApi, onRbac, type RequiredPermissions } from "../../domain/permissions/required-permissions.ts";
import { permissionNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure, type Procedure } from "../../procedure.ts";
import { describeRoles, PermissionOut, RoleOut, toPermissionOut } from "../permissions/schemas.ts";
import { KeyId, RoleName, Slug } from "../schemas.ts";

/* `keys.addPermissions`, `keys.setPermissions`, `keys.removePermissions`, and the same three for roles. */

/** Properties in which the procedures that link permissions or roles to keys differ. */
interface Linking<End, Permissions extends RequiredPermissions>
  extends Pick<Procedure<z.ZodType, z.ZodType, Permissions>, "path" | "summary" | "description" | "permissions"> {
  /** Returns the names of the permissions or roles in the body. */
  readonly names: z.ZodType<string[]>;
  /**
   * Permissions that every call requires. They are required even if the call would change nothing; otherwise, a caller without permission
   * could find out the key's links.
   */
  readonly needed: readonly Permissions[keyof Permissions][];
  /** Looks up the permissions or roles in the request, and returns the change. */
  readonly relink: (
    tx: PoolClient,
    actor: Actor<Permissions[keyof Permissions]>,
    names: readonly string[],
  ) => Promise<Relinking<End>>;
}

const CHANGE = { effect: "change" } as const;

function definePermissions<const Permissions extends RequiredPermissions>({
  names,
  needed,
  relink,
  errors = [],
  ...documented
}: Linking<PermissionRow, Permissions> & { readonly errors?: readonly "permission_not_found"[] }) {
  const body = z.strictObject({ keyId: KeyId, permissions: names });
  const handle = (call: Call<z.output<typeof body>, Permissions>): Promise<PermissionOut[]> =>
    inTransaction(call.deps, async (tx) => {
      const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed });
      const relinking = await relink(tx, call, call.body.permissions);
      return (await relinkKey(tx, call, key, permissionLinks, relinking)).map(toPermissionOut);
    });
  return defineProcedure({
    ...documented,
    ...CHANGE,
    errors: ["key_not_found", ...errors, "managed_by_manifest", "managed_exists"],
    body,
    data: z.array(PermissionOut),
    handle,
  });
}

function defineRoles<const Permissions extends RequiredPermissions>({
  names,
  needed,
  relink,
  ...documented
}: Linking<RoleRow, Permissions>) {
  const body = z.strictObject({ keyId: KeyId, roles: names });
  const handle = (call: Call<z.output<typeof body>, Permissions>): Promise<RoleOut[]> =>
    inTransaction(call.deps, async (tx) => {
      const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed });
      const relinking = await relink(tx, call, call.body.roles);
      return describeRoles(tx, call.caller.workspaceId, await relinkKey(tx, call, key, roleLinks, relinking));
    });
  return defineProcedure({
    ...documented,
    ...CHANGE,
    errors: ["key_not_found", "role_not_found", "managed_by_manifest", "managed_exists"],
    body,
    data: z.array(RoleOut),
    handle,
  });
}

const updateKey = onApi("update_key");
const addPermissionToKey = onRbac("add_permission_to_key");
const removePermissionFromKey = onRbac("remove_permission_from_key");
const createPermission = onRbac("create_permission", "when a slug is new");
const addRoleToKey = onRbac("add_role_to_key");

/** Returns the permissions with these slugs, and creates missing permissions. */
async function ensure(tx: PoolClient, actor: Actor<typeof createPermission>, slugs: readonly string[]) {
  const { permissions, events } = await ensurePermissions(tx, actor, slugs, { newSlugsNeed: createPermission });
  return { permissions, events: [...events] };
}

const findRoles = (tx: PoolClient, { caller }: Actor, names: readonly string[]): Promise<RoleRow[]> =>
  getRolesByName(tx, caller.workspaceId, names);

export const addPermissions = definePermissions({
  path: "keys.addPermissions",
  summary: "Add permissions to a key",
  description:
    "Adds permissions and keeps existing ones. Returns all direct permissions of the key, sorted by slug, without those from its roles.",
  permissions: { updateKey, addPermissionToKey, createPermission },
  names: z.array(Slug).min(1).max(1000).describe("Slugs of permissions; missing permissions are created."),
  needed: [updateKey, addPermissionToKey],
  relink: async (tx, actor, slugs) => {
    const { permissions, events } = await ensure(tx, actor, slugs);
    return adding(permissions, events);
  },
});

export const setPermissions = definePermissions({
  path: "keys.setPermissions",
  summary: "Replace the permissions of a key",
  description:
    "Replaces all direct permissions of the key and returns them, sorted by slug. Permissions from its roles remain.",
  permissions: { updateKey, addPermissionToKey, removePermissionFromKey, createPermission },
  names: z
    .array(Slug)
    .max(1000)
    .describe("Slugs of all permissions of the key; missing permissions are created. `[]` removes all."),
  needed: [updateKey, addPermissionToKey, removePermissionFromKey],
  relink: async (tx, actor, slugs) => {
    const { permissions, events } = await ensure(tx, actor, slugs);
    return replacing(permissions, events);
  },
});

export const removePermissions = definePermissions({
  path: "keys.removePermissions",
  summary: "Remove permissions from a key",
  description:
    "Removes direct permissions from the key. Permissions from its roles remain, and the permissions themselves remain in the workspace. Returns the key's remaining direct permissions, sorted by slug.",
  permissions: { updateKey, removePermissionFromKey },
  errors: ["permission_not_found"],
  names: z
    .array(Slug.describe("Slug or id of a permission; an id takes precedence over an equal slug."))
    .min(1)
    .max(1000)
    .describe("Permissions to remove. All must exist; the key need not have them."),
  needed: [updateKey, removePermissionFromKey],
  relink: async (tx, { caller: { workspaceId } }, permissions) => {
    const found = await listPermissionsByIdOrSlug(tx, { workspaceId, permissions });
    return removing(
      found.map(({ id, asked }) => {
        if (id === null) throw permissionNotFound(asked);
        return id;
      }),
    );
  },
});

export const addRoles = defineRoles({
  path: "keys.addRoles",
  summary: "Add roles to a key",
  description:
    "Adds roles and keeps existing ones. If one of the roles does not exist, none is added. Returns all roles of the key with their permissions, sorted by name.",
  permissions: { updateKey, addRoleToKey },
  names: z.array(RoleName).min(1).max(100).describe("Names of existing roles; case-insensitive."),
  needed: [updateKey, addRoleToKey],
  relink: async (tx, actor, names) => adding(await findRoles(tx, actor, names)),
});

export const setRoles = defineRoles({
  path: "keys.setRoles",
  summary: "Replace the roles of a key",
  description:
    "Replaces all roles of the key and returns them with their permissions, sorted by name. Direct permissions of the key remain. If one of the roles does not exist, nothing changes.",
  permissions: { updateKey },
  names: z.array(RoleName).max(100).describe("Names of all roles of the key, which must exist. `[]` removes all."),
  needed: [updateKey],
  relink: async (tx, actor, names) => replacing(await findRoles(tx, actor, names)),
});

export const removeRoles = defineRoles({
  path: "keys.removeRoles",
  summary: "Remove roles from a key",
  description:
    "Removes roles from the key. The key loses their permissions, unless it holds them directly or through another role. If one of the roles does not exist, none is removed. Returns the remaining roles with their permissions, sorted by name.",
  permissions: { updateKey },
  names: z.array(RoleName).min(1).max(100).describe("Names of existing roles to remove; the key need not have them."),
  needed: [updateKey],
  relink: async (tx, actor, names) => removing((await findRoles(tx, actor, names)).map(({ id }) => id)),
});
