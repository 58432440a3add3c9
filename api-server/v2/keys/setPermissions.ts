import * as z from "zod";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { ensurePermissions } from "../../domain/permissions/permission-links.ts";
import { onApi, onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { PermissionOut, toPermissionOut } from "../permissions/schemas.ts";
import { KeyId, Slug } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  permissions: z
    .array(Slug)
    .max(1000)
    .describe("All slugs that the key will have; permissions that do not exist yet are created. `[]` removes all."),
});
type Body = z.output<typeof Body>;

const Data = z.array(PermissionOut);

const required = {
  updateKey: onApi("update_key"),
  addPermissionToKey: onRbac("add_permission_to_key"),
  removePermissionFromKey: onRbac("remove_permission_from_key"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const setPermissions = defineProcedure({
  path: "keys.setPermissions",
  effect: "change",
  summary: "Replace the permissions of a key",
  description:
    "The key then has exactly these direct permissions; those of its roles stay. Returns them, in the order of their slugs.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<PermissionOut[]> {
  const { body, deps } = call;
  return inTransaction(deps, async (tx) => {
    // Both are required regardless of the difference, so that the result reveals nothing about the key.
    const { updateKey, addPermissionToKey, removePermissionFromKey } = required;
    const key = await lockKeyToLink(tx, call, {
      keyId: call.body.keyId,
      needed: [updateKey, addPermissionToKey, removePermissionFromKey],
    });
    const { permissions, events } = await ensurePermissions(tx, call, body.permissions, {
      newSlugsNeed: required.createPermission,
    });
    const requested = () => permissions;
    return (await relinkKey(tx, call, key, permissionLinks, { wanted: requested, events: [...events] })).map(
      toPermissionOut,
    );
  });
}
