import * as z from "zod";
import { setRolePermissions as set } from "../../domain/permissions/change-role.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Slug } from "../schemas.ts";
import { PermissionOut, SLUGS_MAX, toPermissionOut } from "./schemas.ts";

const Body = z.strictObject({
  roleId: z
    .string()
    .min(3)
    .max(255)
    .regex(/^[a-zA-Z0-9_-]+$/)
    .describe("Id of the role; names are not accepted.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  permissions: z
    .array(Slug)
    .max(SLUGS_MAX)
    .describe("Slugs of all permissions of the role; missing permissions are created."),
  expected: z
    .array(Slug)
    .max(SLUGS_MAX)
    .optional()
    .describe(
      "The permissions that the caller expects the role to grant now. If it grants different ones, nothing is changed: 409.",
    )
    .meta({ "x-postern-addition": true }),
});
type Body = z.output<typeof Body>;

const Data = z.array(PermissionOut);

const required = {
  addPermissionToRole: onRbac("add_permission_to_role"),
  removePermissionFromRole: onRbac("remove_permission_from_role"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const setRolePermissions = defineProcedure({
  path: "permissions.setRolePermissions",
  effect: "change",
  summary: "Replace the permissions of a role",
  description: "Replaces all permissions of the role and returns them, sorted by slug. `[]` removes all.",
  permissions: required,
  errors: ["role_not_found", "role_changed", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<PermissionOut[]> {
  const { roleId, permissions: slugs, expected } = call.body;
  call.require(required.addPermissionToRole);
  call.require(required.removePermissionFromRole);
  const permissions = await set(call, { roleId, slugs, expected, newSlugsNeed: required.createPermission });
  return permissions.map(toPermissionOut);
}
