import * as z from "zod";
import type { Queryable } from "../../../postgres/queryable.ts";
import { listPermissionsOfRoles, type PermissionRow } from "../../db/permissions.ts";
import type { RoleRow } from "../../db/roles.ts";
import { Cursor, Slug } from "../schemas.ts";

/* Shared fields of permissions.* (api-v2.md sections 6.2 and 17). */

export const Description = z
  .string()
  .max(512)
  .describe("Purpose of the permission or role. An empty string means no description.")
  .meta({ examples: ["May read every document."] });

const DescriptionOut = z
  .string()
  .describe("Purpose of the permission or role.")
  .meta({ examples: ["May read every document."] });

export const NewRoleName = z
  .string()
  .min(1)
  .max(128)
  .describe("Name of the role; unique in the workspace, case-insensitive.")
  .meta({ examples: ["editor"] });

export const PermissionName = z
  .string()
  .min(1)
  .max(512)
  .describe("Display name; need not be unique.")
  .meta({ examples: ["Read documents"] });

/** Id or slug of a permission. Ids consist of the same characters as slugs, so one pattern is enough for both. */
export const Permission = Slug.describe(
  "Id or slug of the permission; an id takes precedence over an equal slug.",
).meta({ examples: ["documents.read"] });

/** Maximum number of permissions in one call. To grant more, use wildcards. */
export const SLUGS_MAX = 1000;

/** Cursor of the lists of permissions.*. */
export const ShortCursor = Cursor.max(1024);

export const Role = z
  .string()
  .min(1)
  .max(128)
  .describe("Id or name of the role; an id takes precedence over an equal name.")
  .meta({ examples: ["editor"] });

export const PermissionOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the permission.")
    .meta({ examples: ["perm_4jKm6Np8Qr1St3Uv"] }),
  name: z
    .string()
    .describe("Its name.")
    .meta({ examples: ["Read documents"] }),
  slug: z
    .string()
    .describe("Slug, which permission queries use to refer to the permission.")
    .meta({ examples: ["documents.read"] }),
  description: DescriptionOut.optional(),
});
export type PermissionOut = z.output<typeof PermissionOut>;

export const RoleOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the role.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  name: z
    .string()
    .describe("Its name.")
    .meta({ examples: ["editor"] }),
  description: DescriptionOut.optional(),
  permissions: z.array(PermissionOut).optional().describe("Permissions of the role, sorted by slug."),
});
export type RoleOut = z.output<typeof RoleOut>;

export const toPermissionOut = ({ id, name, slug, description }: PermissionRow): PermissionOut => ({
  id,
  name,
  slug,
  ...(description === null ? {} : { description }),
});

export const toRoleOut = ({ id, name, description }: RoleRow, permissions: readonly PermissionRow[]): RoleOut => ({
  id,
  name,
  ...(description === null ? {} : { description }),
  ...(permissions.length === 0 ? {} : { permissions: permissions.map(toPermissionOut) }),
});

/** Converts roles to the form of the API (api-v2.md section 6.2), in the given order. Reads all of their permissions with one query. */
export async function describeRoles(db: Queryable, workspaceId: string, roles: readonly RoleRow[]): Promise<RoleOut[]> {
  if (roles.length === 0) return [];
  const permissions = await listPermissionsOfRoles(db, { workspaceId, roleIds: roles.map(({ id }) => id) });
  const byRole = Map.groupBy(permissions, (one) => one.role_id);
  return roles.map((role) => toRoleOut(role, byRole.get(role.id) ?? []));
}
