import * as z from "zod";
import { findKey } from "../../db/keys.ts";
import { requireKeyEncryption } from "../../domain/keys/key-encryption.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { keyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeKeys } from "../key-reply.ts";
import { KeyId, KeyOut } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  decrypt: z.boolean().default(false).describe("Whether to return the secret of a recoverable key."),
});
type Body = z.output<typeof Body>;

const required = {
  readKey: onApi("read_key"),
  decryptKey: onApi("decrypt_key", "with `decrypt`"),
};

export const getKey = defineProcedure({
  path: "keys.getKey",
  effect: "read",
  summary: "Read a key",
  description:
    "Returns everything about a key and, on request, the secret of a recoverable key. The response reflects every change that was completed before the call.",
  permissions: required,
  errors: ["key_not_found", "precondition_failed"],
  body: Body,
  data: KeyOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<KeyOut> {
  const { body, caller, deps } = call;
  const { keyId } = body;
  const { workspaceId } = caller;
  const row = await findKey(deps.db, { workspaceId, keyId });
  if (row === undefined) throw keyNotFound(keyId);
  const { api_id: apiId, key_encryption: isEnabled } = row;
  call.require(required.readKey, apiId);
  const vault = body.decrypt ? requireKeyEncryption(call, required.decryptKey, { apiId, isEnabled }) : undefined;
  const [key] = await describeKeys(deps, workspaceId, [row], vault);
  if (key === undefined) throw keyNotFound(keyId);
  return key;
}
