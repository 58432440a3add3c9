import * as z from "zod";
import { removeKey } from "../../domain/keys/remove-key.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty, KeyId } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  permanent: z
    .boolean()
    .default(false)
    .describe(
      "false: the key is marked as deleted, and still appears in analytics and the audit log. true: the key is removed with everything that belongs to it.",
    ),
});
type Body = z.output<typeof Body>;

const required = { deleteKey: onApi("delete_key") };

export const deleteKey = defineProcedure({
  path: "keys.deleteKey",
  effect: "change",
  summary: "Delete a key",
  description: "Verifying a deleted key returns NOT_FOUND. The deletion cannot be undone.",
  permissions: required,
  errors: ["key_not_found", "managed_by_manifest"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { keyId, permanent } = call.body;
  await removeKey(call, { keyId, permanent, needed: required.deleteKey });
  return {};
}
