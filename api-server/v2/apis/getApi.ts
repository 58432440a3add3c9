import * as z from "zod";
import { apiPermission } from "../../../core/permissions/root-key.ts";
import { apiNotFound } from "../../domain/not-found.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { findApi } from "../../store/apis.ts";
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
    .describe("What people call it.")
    .meta({ examples: ["orders"] }),
});

export const getApi = defineProcedure({
  path: "apis.getApi",
  effect: "read",
  summary: "Read an API",
  description: "Gives the API's id and name.",
  permissions: [onApi("read_api")],
  errors: ["api_not_found"],
  body: Body,
  data: Data,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Body>): Promise<z.input<typeof Data>> {
  const { apiId } = body;
  require(apiPermission("read_api", apiId));
  const api = await findApi(deps.db, { workspaceId: caller.workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  return { id: api.id, name: api.name };
}
