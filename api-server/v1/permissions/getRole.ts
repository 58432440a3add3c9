import * as z from "zod";
import { roleNotFound } from "../../domain/refusals/not-found.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { findRole } from "../../store/roles.ts";
import { RoleAnswer, RoleId, toRoleAnswer } from "./schemas.ts";

const Query = z.object({ roleId: RoleId });
type Query = z.output<typeof Query>;

const needed = { readRole: onRbac("read_role") };

export const getRole = defineV1Procedure({
  path: "permissions.getRole",
  method: "GET",
  successor: "permissions.getRole",
  effect: "read",
  summary: "Read a role",
  description: "By its id.",
  permissions: needed,
  errors: ["role_not_found"],
  input: Query,
  answer: RoleAnswer,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Query, typeof needed>): Promise<RoleAnswer> {
  require(needed.readRole);
  const { roleId } = body;
  const row = await findRole(deps.db, { workspaceId: caller.workspaceId, role: roleId });
  // A name is found too, which is no id here.
  if (row?.id !== roleId) throw roleNotFound(roleId);
  return toRoleAnswer(row);
}
