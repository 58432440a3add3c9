import * as z from "zod";
import type { RoleRow } from "../../db/roles.ts";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { getRolesByName } from "../../domain/permissions/permission-links.ts";
import { onApi, onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeRoles } from "../permissions/role-reply.ts";
import { RoleOut } from "../permissions/schemas.ts";
import { KeyId, RoleName } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  roles: z.array(RoleName).min(1).max(100).describe("Names of roles that exist; case-insensitive."),
});
type Body = z.output<typeof Body>;

const Data = z.array(RoleOut);

const required = {
  updateKey: onApi("update_key"),
  addRoleToKey: onRbac("add_role_to_key"),
};

export const addRoles = defineProcedure({
  path: "keys.addRoles",
  effect: "change",
  summary: "Add roles to a key",
  description:
    "Roles that the key has already stay. When one of the roles does not exist, none is added. Returns all roles of the key after the call, with their permissions, in the order of their names.",
  permissions: required,
  errors: ["key_not_found", "role_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<RoleOut[]> {
  const { body, caller, deps } = call;
  return inTransaction(deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, {
      keyId: call.body.keyId,
      needed: [required.updateKey, required.addRoleToKey],
    });
    const roles = await getRolesByName(tx, caller.workspaceId, body.roles);
    const requested = (held: readonly RoleRow[]) => [...held, ...roles];
    return describeRoles(tx, caller.workspaceId, await relinkKey(tx, call, key, roleLinks, { wanted: requested }));
  });
}
