import * as z from "zod";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { permissionsOfLinks } from "../../domain/permissions/named-links.ts";
import { onRbac } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { inTransaction } from "../../store/transaction.ts";
import { KeyId } from "../schemas.ts";
import { checkPermissionItems, LinksAnswer, PermissionItemsWithSlug, toLink, toLinksAnswer } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, permissions: PermissionItemsWithSlug.min(1) });
type Body = z.output<typeof Body>;

const needed = {
  addPermissionToKey: onRbac("add_permission_to_key"),
  createPermission: onRbac("create_permission", "when one is created"),
};

export const setPermissions = defineV1Procedure({
  path: "keys.setPermissions",
  method: "POST",
  successor: "keys.setPermissions",
  effect: "change",
  summary: "Replace the permissions of a key",
  description: "The key then has exactly these direct permissions; those of its roles stay. Returns them.",
  permissions: needed,
  errors: ["key_not_found", "permission_not_found", "managed_elsewhere"],
  input: Body,
  check: ({ permissions }) => checkPermissionItems(permissions),
  answer: LinksAnswer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<LinksAnswer> {
  call.require(needed.addPermissionToKey);
  const links = call.body.permissions.map(toLink);
  return inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, []);
    const { found, events } = await permissionsOfLinks(tx, call, links, needed.createPermission);
    const wanted = () => found;
    return toLinksAnswer(await relinkKey(tx, call, key, permissionLinks, { wanted, events }));
  });
}
