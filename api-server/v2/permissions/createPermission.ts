import * as z from "zod";
import { createPermission as create } from "../../domain/permissions/create-permission.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Slug } from "../schemas.ts";
import { Description, PermissionName } from "./schemas.ts";

const Body = z.strictObject({
  name: PermissionName,
  slug: Slug,
  description: Description.optional(),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  permissionId: z
    .string()
    .describe("Id of the permission.")
    .meta({ examples: ["perm_4jKm6Np8Qr1St3Uv"] }),
});
type Data = z.input<typeof Data>;

const required = { createPermission: onRbac("create_permission") };

export const createPermission = defineProcedure({
  path: "permissions.createPermission",
  effect: "change",
  summary: "Create a permission",
  description:
    "Creates a permission. Permission queries use its slug, which is unique in the workspace (case-insensitive).",
  permissions: required,
  errors: ["permission_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { name, slug, description } = call.body;
  call.require(required.createPermission);
  return { permissionId: await create(call, { name, slug, description }) };
}
