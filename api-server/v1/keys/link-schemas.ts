import * as z from "zod";
import type { NamedLink } from "../../domain/permissions/named-links.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";

/* Schemas for permissions and roles in requests to the keys.* procedures (api-v1.md section 6). */

const PERMISSIONS_MAX = 1000;
const ROLES_MAX = 100;
const SLUG = /^[a-zA-Z0-9_:\-.*]{1,128}$/;
const ROLE_NAME_MAX = 128;

const id = (noun: string, example: string) =>
  z
    .string()
    .min(3)
    .max(255)
    .optional()
    .describe(`Id of the ${noun}; takes precedence over the other fields.`)
    .meta({ examples: [example] });

const text = (description: string, example: string) =>
  z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe(description)
    .meta({ examples: [example] });

const create = z.boolean().default(false).describe("Whether to create the permission if it does not exist.");

const permissionId = id("permission", "perm_4jKm6Np8Qr1St3Uv");
const slugAsName = text("Slug of the permission; case-insensitive.", "documents.read");
const slug = text("Slug of the permission; takes precedence over `name`.", "documents.read");

export const PermissionItem = z.object({ id: permissionId, name: slugAsName, create });
export const PermissionItemWithSlug = z.object({ id: permissionId, slug, name: slugAsName, create });
export const RoleItem = z.object({
  id: id("role", "role_5kLn7Pq9Rs2Tu4Vw"),
  name: text("Name of the role; case-insensitive.", "editor"),
  create,
});

export const PermissionItems = z
  .array(PermissionItem)
  .max(PERMISSIONS_MAX)
  .describe("Roles, each by its id or its name.");
export const PermissionItemsWithSlug = z
  .array(PermissionItemWithSlug)
  .max(PERMISSIONS_MAX)
  .describe("Permissions, each by its id, its slug or its name.");
export const RoleItems = z.array(RoleItem).max(ROLES_MAX).describe("Roles, each by its id or its name.");

export interface Item {
  readonly id?: string | undefined;
  readonly slug?: string | undefined;
  readonly name?: string | undefined;
  readonly create?: boolean;
}

export const toLink = ({ id, slug, name, create = false }: Item): NamedLink => ({ id, name: slug ?? name, create });

/** Throws PublicError 400 for an item without an id or name, or one that would create a permission with an invalid slug. */
export function checkPermissionItems(items: readonly Item[], field = "permissions"): void {
  checkItems(items, field, (name) => (SLUG.test(name) ? undefined : "a slug has 1 to 128 of a-z, A-Z, 0-9 and _:-.*"));
}

/** Throws PublicError 400 for an item without an id or name, or one that would create a role with an invalid name. */
export function checkRoleItems(items: readonly Item[], field = "roles"): void {
  checkItems(items, field, (name) =>
    name.length <= ROLE_NAME_MAX ? undefined : `a role's name has at most ${ROLE_NAME_MAX} characters`,
  );
}

function checkItems(items: readonly Item[], field: string, problemOf: (name: string) => string | undefined): void {
  for (const [at, item] of items.entries()) {
    const { id, name, create } = toLink(item);
    if (id !== undefined) continue;
    if (name === undefined) throw invalidField(`body.${field}[${at}].id`, "an id or a name is required");
    const problem = create ? problemOf(name) : undefined;
    if (problem !== undefined) throw invalidField(`body.${field}[${at}].name`, problem);
  }
}

/** Permissions or roles of a key after the call. */
export const LinksResponse = z.array(
  z.object({
    id: z
      .string()
      .describe("Its id.")
      .meta({ examples: ["perm_4jKm6Np8Qr1St3Uv"] }),
    name: z
      .string()
      .describe("Its name.")
      .meta({ examples: ["documents.read"] }),
  }),
);
export type LinksResponse = z.output<typeof LinksResponse>;

export const toLinksResponse = (rows: readonly { readonly id: string; readonly name: string }[]): LinksResponse =>
  rows.map(({ id, name }) => ({ id, name }));
