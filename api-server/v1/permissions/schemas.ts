import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import type { PermissionRow } from "../../db/permissions.ts";
import type { RoleRow } from "../../db/roles.ts";

/* Fields that the permissions.* procedures share (api-v1.md section 10). */

/** Name or slug of a permission. */
export const PermissionIdentifier = z
  .string()
  .min(3)
  .max(256)
  .regex(/^[A-Za-z0-9_.:-]+$/)
  .meta({ examples: ["documents.read"] });

const SLUG_MAX = 128;

export const PermissionSlug = PermissionIdentifier.max(SLUG_MAX).describe(
  "Slug, which permission queries use to refer to the permission. Unique in the workspace (case-insensitive).",
);

export const RoleName = z
  .string()
  .min(3)
  .max(128)
  .describe("Name of the role; unique in the workspace, case-insensitive.")
  .meta({ examples: ["editor"] });

export const Description = z
  .string()
  .max(256)
  .regex(/^(?:[\s\S]{3,})?$/)
  .describe("Purpose of the permission or role: either empty or at least three characters.")
  .meta({ examples: ["May read every document."] });

const DescriptionResponse = z
  .string()
  .describe("Purpose of the permission or role.")
  .meta({ examples: ["May read every document."] });

export const PermissionId = z
  .string()
  .min(1)
  .max(255)
  .describe("Id of the permission.")
  .meta({ examples: ["perm_4jKm6Np8Qr1St3Uv"] });

export const RoleId = z
  .string()
  .min(1)
  .max(255)
  .describe("Id of the role.")
  .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] });

export const PermissionResponse = z.object({
  id: PermissionId,
  name: z
    .string()
    .describe("Its name.")
    .meta({ examples: ["documents.read"] }),
  slug: z
    .string()
    .describe("Slug, which permission queries use to refer to the permission.")
    .meta({ examples: ["documents.read"] }),
  description: DescriptionResponse.optional(),
});
export type PermissionResponse = z.output<typeof PermissionResponse>;

export const RoleResponse = z.object({
  id: RoleId,
  name: z
    .string()
    .describe("Its name.")
    .meta({ examples: ["editor"] }),
  description: DescriptionResponse.optional(),
});
export type RoleResponse = z.output<typeof RoleResponse>;

export const toPermissionResponse = ({ id, name, slug, description }: PermissionRow): PermissionResponse => ({
  id,
  name,
  slug,
  ...(description === null ? {} : { description }),
});

export const toRoleResponse = ({ id, name, description }: RoleRow): RoleResponse => ({
  id,
  name,
  ...(description === null ? {} : { description }),
});

/**
 * Maximum number of rows in a list. It is needed because v1's lists have no pages. A longer list is an error: if it were truncated instead,
 * a caller could not tell.
 */
export const ROWS_MAX = 10_000;

export const tooManyRows = (noun: string, successor: string): PublicError =>
  new PublicError(
    "precondition_failed",
    `The workspace has more than ${ROWS_MAX} ${noun}, and this list has no pages. Use ${successor} of v2.`,
  );
