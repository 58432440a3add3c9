import * as z from "zod";
import { createRole as create } from "../../domain/permissions/create-role.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Description, RoleId, RoleName } from "./schemas.ts";

const Body = z.object({ name: RoleName, description: Description.optional() });
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ roleId: RoleId });

const required = { createRole: onRbac("create_role") };

export const createRole = defineV1Procedure({
  path: "permissions.createRole",
  method: "POST",
  successor: "permissions.createRole",
  effect: "change",
  summary: "Create a role",
  description: "Creates a role without permissions; v1 has no procedure that adds them.",
  permissions: required,
  errors: ["role_already_exists"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { name, description } = call.body;
  call.require(required.createRole);
  return { roleId: await create(call, { name, description }) };
}
