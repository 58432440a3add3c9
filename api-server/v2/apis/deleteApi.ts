import * as z from "zod";
import { deleteApi as deleteApiOfCall } from "../../domain/apis/apis.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId, Empty } from "../schemas.ts";

const Body = z.strictObject({ apiId: ApiId });
type Body = z.output<typeof Body>;

const required = { deleteApi: onApi("delete_api") };

export const deleteApi = defineProcedure({
  path: "apis.deleteApi",
  effect: "change",
  summary: "Delete an API",
  description:
    "Verifying keys of a deleted API returns NOT_FOUND, and the keys can no longer be read or changed. The deletion cannot be undone.",
  permissions: required,
  errors: ["api_not_found", "protected_resource", "managed_by_manifest"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { apiId } = call.body;
  call.require(required.deleteApi, apiId);
  await deleteApiOfCall(call, apiId);
  return {};
}
