import * as z from "zod";
import { findKey } from "../../db/keys.ts";
import { onApi, refusedAsUnauthorized } from "../../domain/permissions/required-permissions.ts";
import { keyNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { describeKeys, KeyObject } from "../key-object.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId } from "../schemas.ts";

const Query = z.object({
  keyId: KeyId,
  decrypt: z.boolean().default(false).describe("Whether to return the secret of a recoverable key."),
});
type Query = z.output<typeof Query>;

const required = {
  readKey: onApi("read_key"),
  decryptKey: refusedAsUnauthorized(onApi("decrypt_key", "with `decrypt`")),
};

export const getKey = defineV1Procedure({
  path: "keys.getKey",
  method: "GET",
  successor: "keys.getKey",
  effect: "read",
  summary: "Read a key",
  description:
    "Returns the key and, on request, the secret of a recoverable key. The response reflects every change that was completed before the call.",
  permissions: required,
  errors: ["key_not_found"],
  input: Query,
  response: KeyObject,
  handle,
});

async function handle(call: Call<Query, typeof required>): Promise<KeyObject> {
  const { body, caller, deps } = call;
  const { keyId, decrypt } = body;
  const { workspaceId } = caller;
  const row = await findKey(deps.db, { workspaceId, keyId });
  if (row === undefined) throw keyNotFound(keyId);
  call.require(required.readKey, row.api_id);
  if (decrypt) call.require(required.decryptKey, row.api_id);
  // If key encryption is disabled for the API, the secret is omitted, as it is for a key that is not recoverable.
  const vault = decrypt && row.key_encryption ? deps.keyVault : undefined;
  const [key] = await describeKeys(deps, workspaceId, [row], { vault });
  if (key === undefined) throw keyNotFound(keyId);
  return key;
}
