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
    name: nameOf({ min: 1, max: 128 }).describe("Name of the role. A change renames the role; keys keep it."),
    description: z.string().max(512).optional().describe("Purpose of the role, for people."),
    permissions: setOf(Slug, 1000)
      .default([])
      .describe(
        "Slugs of the granted permissions; documents.* grants every slug with the prefix `documents.`. Missing permissions are created.",
      ),
    adopt: Adopt,
    deletionPolicy: DeletionPolicy.optional().describe(
      "Effect of deleting this object: Delete removes the role, also from keys; Orphan keeps it unmanaged. Default: removes it when no key has it.",
    ),
  })
  .describe("Named set of permissions for keys.");
export type RoleSpec = z.output<typeof RoleSpec>;

export const RoleStatus = z.object({ ...statusFields, roleId: storeId("the role") });
export type RoleStatus = z.output<typeof RoleStatus>;
