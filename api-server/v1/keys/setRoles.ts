import * as z from "zod";
import { lockKeyToLink, relinkKey, roleLinks } from "../../domain/keys/key-links.ts";
import { rolesOfLinks } from "../../domain/permissions/named-links.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { inTransaction } from "../../store/transaction.ts";
import { KeyId } from "../schemas.ts";
import { checkRoleItems, LinksAnswer, RoleItems, toLink, toLinksAnswer } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, roles: RoleItems.min(1) });
type Body = z.output<typeof Body>;

const needed = {
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
  permissions: needed,
  errors: ["key_not_found", "role_not_found", "managed_elsewhere"],
  input: Body,
  check: ({ roles }) => checkRoleItems(roles),
  answer: LinksAnswer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<LinksAnswer> {
  call.require(needed.addRoleToKey);
  const links = call.body.roles.map(toLink);
  return inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, []);
    const { found, events } = await rolesOfLinks(tx, call, links, needed.createRole);
    const wanted = () => found;
    return toLinksAnswer(await relinkKey(tx, call, key, roleLinks, { wanted, events }));
  });
}
