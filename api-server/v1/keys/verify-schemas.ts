import * as z from "zod";
import { Code } from "../../../core/verification/codes.ts";
import { KeyId, NameOut, unixMs } from "../schemas.ts";

/*
 * Request and response of keys.verifyKey (api-v1.md section 6.1).
 */

const Cost = z
  .int()
  .min(0)
  .max(1_000_000_000_000)
  .meta({ examples: [1] });

const RequestedRatelimit = z.object({
  name: z
    .string()
    .min(1)
    .max(255)
    .describe("Name of a stored limit, or of a limit that this entry defines.")
    .meta({ examples: ["requests"] }),
  cost: Cost.default(1).describe("Units to consume; 0 checks the limit without consuming."),
  limit: z
    .int()
    .min(0)
    .optional()
    .describe("Units per window; overrides the stored limit.")
    .meta({ examples: [100] }),
  duration: z
    .int()
    .min(0)
    .optional()
    .describe("Window length in ms, at least 1000; overrides the stored limit.")
    .meta({ examples: [60_000] }),
});

export const Body = z.object({
  key: z
    .string()
    .min(1)
    .describe("The secret of the key to verify.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  apiId: z
    .string()
    .max(255)
    .optional()
    .describe("Id of the API to which the key must belong.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  tags: z
    .array(z.string().min(1).max(128))
    .max(10)
    .optional()
    .describe("Tags for analytics. They must not contain secrets.")
    .meta({ examples: [["path=/v1/orders"]] }),
  authorization: z
    .object({
      permissions: z
        .unknown()
        .optional()
        .describe(
          "The permissions that the key must have: a slug, or `and` or `or` with a list of such queries. null or an empty string requires none.",
        )
        .meta({ examples: [{ and: ["documents.read", { or: ["users.view", "users.admin"] }] }] }),
    })
    .optional()
    .describe("Permissions that the key must have."),
  remaining: z
    .object({ cost: Cost.default(1).describe("Credits to spend; 0 checks them without spending.") })
    .optional()
    .describe("Credits that this verification spends. Default: 1."),
  ratelimit: z
    .object({ cost: Cost.default(1).describe("Units of the limit `default` to consume.") })
    .optional()
    .describe("Deprecated. Instead, add an entry with the name `default` to `ratelimits`."),
  ratelimits: z
    .array(RequestedRatelimit)
    .max(50)
    .optional()
    .describe(
      "Limits to charge in addition to those with `autoApply`. The last of several entries with one name applies.",
    ),
});
export type Body = z.output<typeof Body>;

/** Codes of v1. UNAUTHORIZED is documented for v1, but never sent. */
const V1Code = z.enum([...Code.options, "UNAUTHORIZED"]);

const Text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const Meta = z
  .record(z.string(), z.unknown())
  .describe("Metadata of the key.")
  .meta({ examples: [{ plan: "pro" }] });

export const ResponseBody = z.object({
  valid: z.boolean().describe("Whether the key is valid for this request: true only for the code VALID."),
  code: V1Code.describe("Result of the verification, or the first reason for a rejection."),
  requestId: Text("Id of the request, which the response header and the event also contain.", "req_1aBc2DeF3gHi4JkL"),
  keyId: KeyId.optional(),
  enabled: z.boolean().optional().describe("Whether the key is enabled."),
  permissions: z
    .array(Text("Slug.", "documents.read"))
    .optional()
    .describe("Slugs of all permissions that the key holds, directly or through roles."),
  roles: z.array(Text("Name.", "editor")).optional().describe("Names of the key's roles."),
  name: NameOut.optional(),
  ownerId: Text(
    "Owner of the key: the externalId of its identity or, without one, the owner that was stored with the key.",
    "user_123",
  ).optional(),
  meta: Meta.optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  environment: Text("Environment that was given when the key was created.", "production").optional(),
  identity: z
    .object({
      id: Text("Id of the identity.", "id_7nPq0Rs3Tu6Vw9Xy"),
      externalId: Text("External id of the identity in your system.", "user_123"),
      meta: Meta,
    })
    .optional()
    .describe("Identity that owns the key."),
  remaining: z
    .int()
    .optional()
    .describe("Remaining credits after the verification. Omitted for unlimited keys, and if credits were not checked.")
    .meta({ examples: [999] }),
  ratelimit: z
    .object({
      limit: z
        .int()
        .describe("Units per window.")
        .meta({ examples: [100] }),
      remaining: z
        .int()
        .describe("Remaining units of the window.")
        .meta({ examples: [99] }),
      reset: unixMs("End of the window, Unix milliseconds."),
    })
    .optional()
    .describe(
      "One of the limits, if limits were checked: the first one (by name) that rejected the request, otherwise the limit `default`, otherwise the first one.",
    ),
});
export type ResponseBody = z.input<typeof ResponseBody>;
