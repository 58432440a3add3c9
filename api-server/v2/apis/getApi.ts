import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId } from "../schemas.ts";

const Body = z.strictObject({ apiId: ApiId });
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  id: z
    .string()
    .describe("Id of the API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  name: z
    .string()
    .describe("Name of the API.")
    .meta({ examples: ["orders"] }),
});

const required = { readApi: onApi("read_api") };

export const getApi = defineProcedure({
  path: "apis.getApi",
  effect: "read",
  summary: "Read an API",
  description: "Returns the API's id and name.",
  permissions: required,
  errors: ["api_not_found"],
  body: Body,
  data: Data,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Body, typeof required>): Promise<z.input<typeof Data>> {
  const { apiId } = body;
  require(required.readApi, apiId);
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  return { id: api.id, name: api.name };
}
