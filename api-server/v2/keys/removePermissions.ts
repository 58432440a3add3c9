import * as z from "zod";
import { listPermissionsByIdOrSlug, type PermissionRow } from "../../db/permissions.ts";
import { inTransaction } from "../../db/transaction.ts";
import { lockKeyToLink, permissionLinks, relinkKey } from "../../domain/keys/key-links.ts";
import { onApi, onRbac } from "../../domain/permissions/required-permissions.ts";
import { permissionNotFound } from "../../domain/refusals/not-found.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { PermissionOut, toPermissionOut } from "../permissions/schemas.ts";
import { KeyId, Slug } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  permissions: z
    .array(
      Slug.describe("Slug or id of a permission; when a text is the id of one and the slug of another, the id wins."),
    )
    .min(1)
    .max(1000)
    .describe("All of them must exist; the key need not have them."),
});
type Body = z.output<typeof Body>;

const Data = z.array(PermissionOut);

const required = {
  updateKey: onApi("update_key"),
  removePermissionFromKey: onRbac("remove_permission_from_key"),
};

export const removePermissions = defineProcedure({
  path: "keys.removePermissions",
  effect: "change",
  summary: "Remove permissions from a key",
  description:
    "Removes direct permissions of the key; the permissions of its roles stay. The permissions themselves stay in the workspace. Returns the direct permissions that are left, in the order of their slugs.",
  permissions: required,
  errors: ["key_not_found", "permission_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<PermissionOut[]> {
  const { body, caller, deps } = call;
  return inTransaction(deps, async (tx) => {
    const key = await lockKeyToLink(tx, call, {
      keyId: call.body.keyId,
      needed: [required.updateKey, required.removePermissionFromKey],
    });
    const asked = await listPermissionsByIdOrSlug(tx, {
      workspaceId: caller.workspaceId,
      permissions: body.permissions,
    });
    const unknown = asked.find(({ id }) => id === null);
    if (unknown !== undefined) throw permissionNotFound(unknown.asked);
    const unwanted = new Set(asked.map(({ id }) => id));
    const requested = (held: readonly PermissionRow[]) => held.filter(({ id }) => !unwanted.has(id));
    return (await relinkKey(tx, call, key, permissionLinks, { wanted: requested })).map(toPermissionOut);
  });
}
