import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, NameOut, WorkspaceId } from "../schemas.ts";

const Query = z.object({ apiId: ApiId });
type Query = z.output<typeof Query>;

const ResponseBody = z.object({ id: ApiId, workspaceId: WorkspaceId, name: NameOut.optional() });

const required = { readApi: onApi("read_api") };

export const getApi = defineV1Procedure({
  path: "apis.getApi",
  method: "GET",
  successor: "apis.getApi",
  effect: "read",
  summary: "Read an API",
  description: "Returns the API's id, its workspace and its name.",
  permissions: required,
  errors: ["api_not_found"],
  input: Query,
  response: ResponseBody,
  handle,
});

async function handle({
  body,
  caller,
  deps,
  require,
}: Call<Query, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { apiId } = body;
  const { workspaceId } = caller;
  require(required.readApi, apiId);
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  return { id: api.id, workspaceId, name: api.name };
}
