import * as z from "zod";
import { createApi as createApiOfCall } from "../../domain/apis/apis.ts";
import { onApis } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({
  name: z
    .string()
    .min(3)
    .max(256)
    .describe("Display name of the API; need not be unique.")
    .meta({ examples: ["payments"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  apiId: z
    .string()
    .describe("Id of the API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
});

const required = { createApi: onApis("create_api") };

export const createApi = defineProcedure({
  path: "apis.createApi",
  effect: "change",
  summary: "Create an API",
  description:
    "Creates an API, to which keys belong. With the header `Postern-Manager`, the call can be repeated safely.",
  permissions: required,
  errors: [],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Data>> {
  call.require(required.createApi);
  return { apiId: await createApiOfCall(call, call.body.name) };
}
