import * as z from "zod";
import { createPermission as create } from "../../domain/permissions/create-permission.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { Description, PermissionId, PermissionIdentifier, PermissionSlug } from "./schemas.ts";

const Body = z.object({
  name: PermissionIdentifier.describe("A name for people; need not be unique."),
  slug: PermissionSlug.optional().describe("What keys are asked for; the name when left out."),
  description: Description.optional(),
});
type Body = z.output<typeof Body>;

const Answer = z.object({ permissionId: PermissionId });

const needed = { createPermission: onRbac("create_permission") };

export const createPermission = defineV1Procedure({
  path: "permissions.createPermission",
  method: "POST",
  successor: "permissions.createPermission",
  effect: "change",
  summary: "Create a permission",
  description: "The slug is the name that queries ask for; it is unique in the workspace, case-insensitive.",
  permissions: needed,
  errors: ["permission_already_exists"],
  input: Body,
  check: ({ name, slug = name }) => {
    if (PermissionSlug.safeParse(slug).success) return;
    throw invalidField("body.name", "a name without a slug is the slug, which has at most 128 characters");
  },
  answer: Answer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { name, slug = name, description } = call.body;
  call.require(needed.createPermission);
  return { permissionId: await create(call, { name, slug, description }) };
}
