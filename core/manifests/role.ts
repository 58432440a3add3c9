import * as z from "zod";
import { Adopt, DeletionPolicy, nameOf, setOf, statusFields, storeId } from "./fields.ts";

const Slug = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[a-zA-Z0-9_:\-.*]+$/, { error: "expected a permission: letters, digits and _ : - . *" });

/** A role: a named set of permissions that keys can hold. */
export const RoleSpec = z
  .strictObject({
    name: nameOf({ min: 1, max: 128 }).describe(
      "The role's name in the store. Changing it renames the role; keys keep it.",
    ),
    description: z.string().max(512).optional().describe("What the role is for."),
    permissions: setOf(Slug, 1000)
      .default([])
      .describe(
        "Slugs of the permissions that the role grants. Missing ones are created. A slug such as documents.* grants all slugs that begin with documents.",
      ),
    adopt: Adopt,
    deletionPolicy: DeletionPolicy.optional().describe(
      "What happens to the role when this object is deleted: Delete removes it, and keys lose it; Orphan leaves it in the store, no longer managed. Without it the role is removed when no key has it.",
    ),
  })
  .describe("A named set of permissions, for keys.");
export type RoleSpec = z.output<typeof RoleSpec>;

export const RoleStatus = z.object({ ...statusFields, roleId: storeId("the role") });
export type RoleStatus = z.output<typeof RoleStatus>;
