import * as z from "zod";
import { removeKey } from "../../domain/keys/remove-key.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Empty, KeyId } from "../schemas.ts";

const Body = z.object({
  keyId: KeyId,
  permanent: z
    .boolean()
    .default(false)
    .describe(
      "Whether to remove the key and its data permanently. Default: the key is marked as deleted, and its secret cannot be imported again.",
    ),
});
type Body = z.output<typeof Body>;

const required = { deleteKey: onApi("delete_key") };

export const deleteKey = defineV1Procedure({
  path: "keys.deleteKey",
  method: "POST",
  successor: "keys.deleteKey",
  effect: "change",
  summary: "Delete a key",
  description: "Verifying a deleted key returns NOT_FOUND. The deletion cannot be undone.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest"],
  input: Body,
  response: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { keyId, permanent } = call.body;
  await removeKey(call, { keyId, permanent, needed: required.deleteKey });
  return {};
}
