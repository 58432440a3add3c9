import * as z from "zod";
import { deleteApi as deleteApiOfCall } from "../../domain/apis/delete-api.ts";
import { onApi } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { ApiId, Empty } from "../schemas.ts";

const Body = z.object({ apiId: ApiId });
type Body = z.output<typeof Body>;

const needed = { deleteApi: onApi("delete_api") };

export const deleteApi = defineV1Procedure({
  path: "apis.deleteApi",
  method: "POST",
  successor: "apis.deleteApi",
  effect: "change",
  summary: "Delete an API",
  description: "Its keys then verify as NOT_FOUND, and can no longer be read or changed. This cannot be undone.",
  permissions: needed,
  errors: ["api_not_found", "protected_resource", "managed_elsewhere"],
  input: Body,
  answer: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { apiId } = call.body;
  call.require(needed.deleteApi, apiId);
  await deleteApiOfCall(call, apiId);
  return {};
}
