import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { permissionsOfLinks } from "../../domain/permissions/named-links.ts";
import { onRbac, refusedAsUnauthorized } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId } from "../schemas.ts";
import { checkPermissionItems, LinksResponse, PermissionItems, toLink, toLinksResponse } from "./link-schemas.ts";

const Body = z.object({ keyId: KeyId, permissions: PermissionItems.min(1) });
type Body = z.output<typeof Body>;

const required = {
  addPermissionToKey: onRbac("add_permission_to_key"),
  createPermission: refusedAsUnauthorized(onRbac("create_permission", "when one is created")),
};

export const addPermissions = defineV1Procedure({
  path: "keys.addPermissions",
  method: "POST",
  successor: "keys.addPermissions",
  effect: "change",
  summary: "Add permissions to a key",
  description: "Permissions that the key has already stay. Returns all direct permissions of the key after the call.",
  permissions: required,
  errors: ["key_not_found", "permission_not_found", "managed_by_manifest"],
  input: Body,
  check: ({ permissions }) => checkPermissionItems(permissions),
  response: LinksResponse,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<LinksResponse> {
  call.require(required.addPermissionToKey);
  const links = call.body.permissions.map(toLink);
  return inTransaction(call.deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, { keyId: call.body.keyId, needed: [] });
    const { found, events } = await permissionsOfLinks(tx, call, links, required.createPermission);
    const requested = (held: typeof found) => [...held, ...found];
    return toLinksResponse(await relinkKey(tx, call, key, permissionLinks, { wanted: requested, events }));
  });
}
