import * as z from "zod";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { ensurePermissions } from "../../domain/permissions/permission-links.ts";
import { onApi, onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { inTransaction } from "../../store/transaction.ts";
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

const needed = {
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
  permissions: needed,
  errors: ["key_not_found", "managed_elsewhere", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<PermissionOut[]> {
  const { body, deps } = call;
  return inTransaction(deps, async (tx) => {
    // Both are required whatever the difference is, so that the result reveals nothing about the key.
    const { updateKey, addPermissionToKey, removePermissionFromKey } = needed;
    const key = await lockKeyToLink(tx, call, [updateKey, addPermissionToKey, removePermissionFromKey]);
    const { permissions, events } = await ensurePermissions(tx, call, body.permissions, {
      newSlugsNeed: needed.createPermission,
    });
    const wanted = () => permissions;
    return (await relinkKey(tx, call, key, permissionLinks, { wanted, events: [...events] })).map(toPermissionOut);
  });
}
