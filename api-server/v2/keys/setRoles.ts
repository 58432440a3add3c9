import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { getRolesByName } from "../../domain/permissions/permission-links.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeRoles } from "../permissions/role-reply.ts";
import { RoleOut } from "../permissions/schemas.ts";
import { KeyId, RoleName } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  roles: z
    .array(RoleName)
    .max(100)
    .describe("Names of all roles that the key will have; they must exist. `[]` removes all."),
});
type Body = z.output<typeof Body>;

const Data = z.array(RoleOut);

const required = { updateKey: onApi("update_key") };

export const setRoles = defineProcedure({
  path: "keys.setRoles",
  effect: "change",
  summary: "Replace the roles of a key",
  description:
    "The key then has exactly these roles; its direct permissions stay. When one of the roles does not exist, nothing changes. Returns the roles, with their permissions, in the order of their names.",
  permissions: required,
  errors: ["key_not_found", "role_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<RoleOut[]> {
  const { body, caller, deps } = call;
  return inTransaction(deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [required.updateKey] });
    const roles = await getRolesByName(tx, caller.workspaceId, body.roles);
    const requested = () => roles;
    return describeRoles(tx, caller.workspaceId, await relinkKey(tx, call, key, roleLinks, { wanted: requested }));
  });
}
