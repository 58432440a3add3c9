import * as z from "zod";
import { createApi as createApiOfCall } from "../../domain/apis/apis.ts";
import { onApis } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, Name, NameOut } from "../schemas.ts";

const Body = z.object({ name: Name.min(3) });
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ apiId: ApiId, name: NameOut });

const required = { createApi: onApis("create_api") };

export const createApi = defineV1Procedure({
  path: "apis.createApi",
  method: "POST",
  successor: "apis.createApi",
  effect: "change",
  summary: "Create an API",
  description: "Creates an API, to which keys belong.",
  permissions: required,
  errors: [],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { name } = call.body;
  call.require(required.createApi);
  return { apiId: await createApiOfCall(call, name), name };
}
