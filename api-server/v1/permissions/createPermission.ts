import * as z from "zod";
import { createPermission as create } from "../../domain/permissions/create-permission.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Description, PermissionId, PermissionIdentifier, PermissionSlug } from "./schemas.ts";

const Body = z.object({
  name: PermissionIdentifier.describe("Display name; need not be unique."),
  slug: PermissionSlug.optional().describe(
    "Slug, which permission queries use to refer to the permission. Default: the name.",
  ),
  description: Description.optional(),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ permissionId: PermissionId });

const required = { createPermission: onRbac("create_permission") };

export const createPermission = defineV1Procedure({
  path: "permissions.createPermission",
  method: "POST",
  successor: "permissions.createPermission",
  effect: "change",
  summary: "Create a permission",
  description:
    "Creates a permission. Permission queries use its slug, which is unique in the workspace (case-insensitive).",
  permissions: required,
  errors: ["permission_already_exists"],
  input: Body,
  check: ({ name, slug = name }) => {
    if (PermissionSlug.safeParse(slug).success) return;
    throw invalidField("body.name", "without a slug, the name is used as the slug, which has at most 128 characters");
  },
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { name, slug = name, description } = call.body;
  call.require(required.createPermission);
  return { permissionId: await create(call, { name, slug, description }) };
}
