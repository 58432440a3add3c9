import * as z from "zod";
import { updateApi as change } from "../../domain/apis/apis.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId, Empty } from "../schemas.ts";

const Body = z.strictObject({
  apiId: ApiId,
  name: z
    .string()
    .min(3)
    .max(256)
    .optional()
    .describe("New name. If omitted, the name does not change.")
    .meta({ examples: ["orders"] }),
});
type Body = z.output<typeof Body>;

const required = { updateApi: onApi("update_api") };

export const updateApi = defineProcedure({
  path: "apis.updateApi",
  effect: "change",
  summary: "Change an API",
  description: "Changes the name. With `Postern-Adopt: true` an unmanaged API becomes managed by the caller.",
  permissions: required,
  errors: ["api_not_found", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  await change(call, required.updateApi, call.body);
  return {};
}
