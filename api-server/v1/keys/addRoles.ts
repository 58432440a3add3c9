import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { rolesOfLinks } from "../../domain/permissions/named-links.ts";
import { onRbac, refusedAsUnauthorized } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId } from "../schemas.ts";
import { checkRoleItems, LinksResponse, RoleItems, toLink, toLinksResponse } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, roles: RoleItems.min(1) });
type Body = z.output<typeof Body>;

const required = {
  addRoleToKey: onRbac("add_role_to_key"),
  createRole: refusedAsUnauthorized(onRbac("create_role", "when one is created")),
  // What v1 asked for by mistake: root keys that were made for it have no other.
  createPermission: refusedAsUnauthorized(onRbac("create_permission", "in place of `rbac.*.create_role`")),
};

export const addRoles = defineV1Procedure({
  path: "keys.addRoles",
  method: "POST",
  successor: "keys.addRoles",
  effect: "change",
  summary: "Add roles to a key",
  description: "Roles that the key has already stay. Returns all roles of the key after the call.",
  permissions: required,
  errors: ["key_not_found", "role_not_found", "managed_by_manifest"],
  input: Body,
  check: ({ roles }) => checkRoleItems(roles),
  response: LinksResponse,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<LinksResponse> {
  call.require(required.addRoleToKey);
  const links = call.body.roles.map(toLink);
  const creating = call.holds(required.createPermission) ? required.createPermission : required.createRole;
  return inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [] });
    const { found, events } = await rolesOfLinks(tx, call, links, creating);
    const requested = (held: typeof found) => [...held, ...found];
    return toLinksResponse(await relinkKey(tx, call, key, roleLinks, { wanted: requested, events }));
  });
}
