import * as z from "zod";
import { createRole as create } from "../../domain/permissions/create-role.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { Description, RoleId, RoleName } from "./schemas.ts";

const Body = z.object({ name: RoleName, description: Description.optional() });
type Body = z.output<typeof Body>;

const Answer = z.object({ roleId: RoleId });

const needed = { createRole: onRbac("create_role") };

export const createRole = defineV1Procedure({
  path: "permissions.createRole",
  method: "POST",
  successor: "permissions.createRole",
  effect: "change",
  summary: "Create a role",
  description: "A role without permissions; v1 has no procedure that adds them.",
  permissions: needed,
  errors: ["role_already_exists"],
  input: Body,
  answer: Answer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { name, description } = call.body;
  call.require(needed.createRole);
  return { roleId: await create(call, { name, description }) };
}
