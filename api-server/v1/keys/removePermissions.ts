import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { idsOfPermissionLinks } from "../../domain/permissions/named-links.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty, KeyId } from "../schemas.ts";
import { checkPermissionItems, PermissionItemsWithSlug, toLink } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, permissions: PermissionItemsWithSlug.min(1) });
type Body = z.output<typeof Body>;

const required = { removePermissionFromKey: onRbac("remove_permission_from_key") };

export const removePermissions = defineV1Procedure({
  path: "keys.removePermissions",
  method: "POST",
  successor: "keys.removePermissions",
  effect: "change",
  summary: "Remove permissions from a key",
  description: "What does not exist, or is not connected to the key, is ignored. The permissions of its roles stay.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest"],
  input: Body,
  check: ({ permissions }) => checkPermissionItems(permissions),
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  call.require(required.removePermissionFromKey);
  const links = call.body.permissions.map(toLink);
  await inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [] });
    const unwanted = await idsOfPermissionLinks(tx, call, links);
    await relinkKey(tx, call, key, permissionLinks, { wanted: (held) => held.filter(({ id }) => !unwanted.has(id)) });
  });
  return {};
}
