import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { revokeRootKey } from "../../domain/administration/root-keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { isOwn, RootKeyId, rootKeyIsCaller, rootKeyNotFound } from "./root-key-schemas.ts";

const Body = z.strictObject({ rootKeyId: RootKeyId });
type Body = z.output<typeof Body>;

const required = { deleteRootKey: onWorkspace("delete_root_key") };

export const deleteRootKey = defineProcedure({
  path: "admin.deleteRootKey",
  effect: "change",
  summary: "Revoke a root key",
  description:
    "Revokes a root key permanently: requests with it get 401. A root key that `POSTERN_ROOT_KEY` registers becomes valid again when an api-server starts.",
  permissions: required,
  errors: ["root_key_not_found", "root_key_is_caller"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Record<string, never>> {
  const { rootKeyId } = call.body;
  call.require(required.deleteRootKey);
  if (isOwn(call, rootKeyId)) throw rootKeyIsCaller(rootKeyId);
  const revoked = await revokeRootKey(administratorOf(call), { workspaceId: call.caller.workspaceId, rootKeyId });
  if (revoked === undefined) throw rootKeyNotFound(rootKeyId);
  return {};
}
