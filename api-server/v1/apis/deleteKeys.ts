import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { removeKeysOfApi } from "../../domain/keys/remove-keys-of-api.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId } from "../schemas.ts";

const Body = z.object({
  apiId: ApiId,
  permanent: z
    .boolean()
    .default(false)
    .describe(
      "Whether to remove the keys and their data permanently, including keys that were deleted earlier. Default: the keys are marked as deleted.",
    ),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({
  deletedKeys: z
    .int()
    .describe("Number of deleted keys.")
    .meta({ examples: [3] }),
});

const required = { deleteKey: onApi("delete_key") };

export const deleteKeys = defineV1Procedure({
  path: "apis.deleteKeys",
  method: "POST",
  successor: "keys.deleteKey",
  effect: "change",
  summary: "Delete all keys of an API",
  description:
    "Verifying a deleted key returns NOT_FOUND. The API remains, and its delete protection has no effect on this call. Many keys are deleted in several transactions: after an interruption, repeat the call.",
  permissions: required,
  errors: ["api_not_found", "managed_by_manifest"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { body, caller, deps } = call;
  const { apiId, permanent } = body;
  call.require(required.deleteKey, apiId);
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  return { deletedKeys: await removeKeysOfApi(call, { apiId, permanent, needed: required.deleteKey }) };
}
