import * as z from "zod";
import { createApi as createApiOfCall } from "../../domain/apis/create-api.ts";
import { onApis } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { ApiId, Name, NameOut } from "../schemas.ts";

const Body = z.object({ name: Name.min(3) });
type Body = z.output<typeof Body>;

const Answer = z.object({ apiId: ApiId, name: NameOut });

const needed = { createApi: onApis("create_api") };

export const createApi = defineV1Procedure({
  path: "apis.createApi",
  method: "POST",
  successor: "apis.createApi",
  effect: "change",
  summary: "Create an API",
  description: "Keys belong to an API.",
  permissions: needed,
  errors: [],
  input: Body,
  answer: Answer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { name } = call.body;
  call.require(needed.createApi);
  return { apiId: await createApiOfCall(call, name), name };
}
