import * as z from "zod";
import { findRootKeySummary } from "../../db/root-keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeRootKey } from "./describe-root-keys.ts";
import { RootKeyDetails, RootKeyId, rootKeyNotFound } from "./root-key-schemas.ts";

const Body = z.strictObject({ rootKeyId: RootKeyId });
type Body = z.output<typeof Body>;

const required = { readRootKey: onWorkspace("read_root_key") };

export const getRootKey = defineProcedure({
  path: "admin.getRootKey",
  effect: "read",
  summary: "Get a root key",
  description:
    "Returns a root key with the permissions that its requests required, and those that would have sufficed. A revoked root key is not found.",
  permissions: required,
  errors: ["root_key_not_found"],
  addition: true,
  body: Body,
  data: RootKeyDetails,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<RootKeyDetails> {
  const { body, caller, deps } = call;
  const { rootKeyId } = body;
  call.require(required.readRootKey);
  const row = await findRootKeySummary(deps.db, { workspaceId: caller.workspaceId, rootKeyId });
  if (row === undefined) throw rootKeyNotFound(rootKeyId);
  return describeRootKey(deps.db, { workspaceId: caller.workspaceId, row, nowMs: deps.nowMs() });
}
