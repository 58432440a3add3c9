import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { idsOfRoleLinks } from "../../domain/permissions/named-links.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty, KeyId } from "../schemas.ts";
import { checkRoleItems, RoleItems, toLink } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, roles: RoleItems.min(1) });
type Body = z.output<typeof Body>;

const required = { removeRoleFromKey: onRbac("remove_role_from_key") };

export const removeRoles = defineV1Procedure({
  path: "keys.removeRoles",
  method: "POST",
  successor: "keys.removeRoles",
  effect: "change",
  summary: "Remove roles from a key",
  description: "What does not exist, or is not connected to the key, is ignored.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest"],
  input: Body,
  check: ({ roles }) => checkRoleItems(roles),
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  call.require(required.removeRoleFromKey);
  const links = call.body.roles.map(toLink);
  await inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [] });
    const unwanted = await idsOfRoleLinks(tx, call, links);
    await relinkKey(tx, call, key, roleLinks, { wanted: (held) => held.filter(({ id }) => !unwanted.has(id)) });
  });
  return {};
}
