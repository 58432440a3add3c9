import * as z from "zod";
import { createRole as create } from "../../domain/permissions/create-role.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Slug } from "../schemas.ts";
import { Description, NewRoleName, SLUGS_MAX } from "./schemas.ts";

const Body = z.strictObject({
  name: NewRoleName,
  description: Description.optional(),
  permissions: z
    .array(Slug)
    .max(SLUGS_MAX)
    .optional()
    .describe("Slugs of permissions; missing permissions are created."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  roleId: z
    .string()
    .describe("Id of the role.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
});
type Data = z.input<typeof Data>;

const required = {
  createRole: onRbac("create_role"),
  addPermissionToRole: onRbac("add_permission_to_role", "with `permissions`"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const createRole = defineProcedure({
  path: "permissions.createRole",
  effect: "change",
  summary: "Create a role",
  description:
    "A role grants its permissions to every key that has it. With `Postern-Manager`, the call can be repeated safely.",
  permissions: required,
  errors: ["role_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { name, description, permissions: slugs = [] } = call.body;
  call.require(required.createRole);
  if (slugs.length > 0) call.require(required.addPermissionToRole);
  const grants = { slugs, newSlugsNeed: required.createPermission };
  return { roleId: await create(call, { name, description, grants }) };
}
