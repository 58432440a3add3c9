import * as z from "zod";
import { DEFAULT_PREFIX, IP_ALLOW_LIST_MAX, ipAllowListProblem } from "../../domain/administration/apis.ts";
import { updateApi as change } from "../../domain/apis/apis.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId, Empty } from "../schemas.ts";

const IP_RANGE_LENGTH_MAX = 64;

const Body = z.strictObject({
  apiId: ApiId,
  name: z
    .string()
    .min(3)
    .max(256)
    .optional()
    .describe("New name. If omitted, the name does not change.")
    .meta({ examples: ["orders"] }),
  defaultPrefix: z
    .string()
    .regex(DEFAULT_PREFIX)
    .nullable()
    .optional()
    .describe("Default prefix of new keys; `null` for none.")
    .meta({ examples: ["prod"] }),
  defaultByteLength: z
    .int()
    .min(16)
    .max(255)
    .nullable()
    .optional()
    .describe("Default number of random bytes in new keys; `null` restores 16.")
    .meta({ examples: [24] }),
  ipAllowList: z
    .array(
      z
        .string()
        .max(IP_RANGE_LENGTH_MAX)
        .meta({ examples: ["10.0.0.0/8"] }),
    )
    .max(IP_ALLOW_LIST_MAX)
    .optional()
    .describe(
      "Client addresses and CIDR blocks from which keys of the API can be used. An empty list allows every address.",
    ),
  deleteProtection: z.boolean().optional().describe("Whether the API is protected from deletion."),
  keyEncryption: z
    .boolean()
    .optional()
    .describe(
      "Whether recoverable keys can be created in the API. This also requires that the api-servers have an encryption key.",
    ),
});
type Body = z.output<typeof Body>;

const required = { updateApi: onApi("update_api") };

export const updateApi = defineProcedure({
  path: "apis.updateApi",
  effect: "change",
  summary: "Change an API",
  description:
    "Changes the given members. Existing keys keep their prefix and length. With `Postern-Adopt: true`, an unmanaged API becomes managed by the caller.",
  permissions: required,
  errors: ["api_not_found", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { apiId, name, ...settings } = call.body;
  const ipAllowList = settings.ipAllowList && [...new Set(settings.ipAllowList)];
  const problem = ipAllowList && ipAllowListProblem(ipAllowList);
  if (problem !== undefined) throw invalidField("body.ipAllowList", problem);
  await change(call, required.updateApi, { apiId, name, settings: { ...settings, ipAllowList } });
  return {};
}
