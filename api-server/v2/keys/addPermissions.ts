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
  permissions: z.array(Slug).min(1).max(1000).describe("Slugs; permissions that do not exist yet are created."),
});
type Body = z.output<typeof Body>;

const Data = z.array(PermissionOut);

const required = {
  updateKey: onApi("update_key"),
  addPermissionToKey: onRbac("add_permission_to_key"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const addPermissions = defineProcedure({
  path: "keys.addPermissions",
  effect: "change",
  summary: "Add permissions to a key",
  description:
    "Permissions that the key has already stay. Returns all direct permissions of the key after the call, in the order of their slugs, without those of its roles.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<PermissionOut[]> {
  const { body, deps } = call;
  return inTransaction(deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, {
      keyId: call.body.keyId,
      needed: [required.updateKey, required.addPermissionToKey],
    });
    const { permissions, events } = await ensurePermissions(tx, call, body.permissions, {
      newSlugsNeed: required.createPermission,
    });
    const requested = (held: typeof permissions) => [...held, ...permissions];
    return (await relinkKey(tx, call, key, permissionLinks, { wanted: requested, events: [...events] })).map(
      toPermissionOut,
    );
  });
}
