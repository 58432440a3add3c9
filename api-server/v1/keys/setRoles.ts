import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { rolesOfLinks } from "../../domain/permissions/named-links.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId } from "../schemas.ts";
import { checkRoleItems, LinksResponse, RoleItems, toLink, toLinksResponse } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, roles: RoleItems.min(1) });
type Body = z.output<typeof Body>;

const required = {
  addRoleToKey: onRbac("add_role_to_key"),
  createRole: onRbac("create_role", "when one is created"),
};

export const setRoles = defineV1Procedure({
  path: "keys.setRoles",
  method: "POST",
  successor: "keys.setRoles",
  effect: "change",
  summary: "Replace the roles of a key",
  description: "The key then has exactly these roles; its direct permissions stay. Returns them.",
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
  return inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [] });
    const { found, events } = await rolesOfLinks(tx, call, links, required.createRole);
    const requested = () => found;
    return toLinksResponse(await relinkKey(tx, call, key, roleLinks, { wanted: requested, events }));
  });
}
