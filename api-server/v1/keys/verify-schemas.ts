import * as z from "zod";
import { Code } from "../../../core/verification/codes.ts";
import { KeyId, NameOut, unixMs } from "../schemas.ts";

/*
 * Request and answer of keys.verifyKey (api-v1.md section 6.1).
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
  cost: Cost.default(1).describe("Units to consume; 0 only checks."),
  limit: z
    .int()
    .min(0)
    .optional()
    .describe("Units per window, instead of the stored limit's.")
    .meta({ examples: [100] }),
  duration: z
    .int()
    .min(0)
    .optional()
    .describe("Length of the window, ms, instead of the stored limit's; at least 1000.")
    .meta({ examples: [60_000] }),
});

export const Body = z.object({
  key: z
    .string()
    .min(1)
    .describe("The secret.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  apiId: z
    .string()
    .max(255)
    .optional()
    .describe("The API that the key must be of.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  tags: z
    .array(z.string().min(1).max(128))
    .max(10)
    .optional()
    .describe("Only for analytics; do not put secrets here.")
    .meta({ examples: [["path=/v1/orders"]] }),
  authorization: z
    .object({
      permissions: z
        .unknown()
        .optional()
        .describe(
          "The permissions that the key must have: a slug, or `and` or `or` with a list of such queries. null or the empty text: none.",
        )
        .meta({ examples: [{ and: ["documents.read", { or: ["users.view", "users.admin"] }] }] }),
    })
    .optional()
    .describe("What the key must be allowed to do."),
  remaining: z
    .object({ cost: Cost.default(1).describe("Credits to spend; 0 only checks.") })
    .optional()
    .describe("Omitted: a cost of 1."),
  ratelimit: z
    .object({ cost: Cost.default(1).describe("Units to consume of the limit `default`.") })
    .optional()
    .describe("Deprecated: name `default` among `ratelimits`."),
  ratelimits: z
    .array(RequestedRatelimit)
    .max(50)
    .optional()
    .describe("Limits to charge besides those with `autoApply`; of entries with the same name the last one counts."),
});
export type Body = z.output<typeof Body>;

/** UNAUTHORIZED is one of the codes that v1 documents, and is never sent. */
const V1Code = z.enum([...Code.options, "UNAUTHORIZED"]);

const Text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const Meta = z
  .record(z.string(), z.unknown())
  .describe("Your own data.")
  .meta({ examples: [{ plan: "pro" }] });

export const ResponseBody = z.object({
  valid: z.boolean().describe("True only for the code VALID."),
  code: V1Code.describe("The result, or the first reason for a refusal."),
  requestId: Text("Id of the request, as in the header and in the event.", "req_1aBc2DeF3gHi4JkL"),
  keyId: KeyId.optional(),
  enabled: z.boolean().optional().describe("Whether the key is enabled."),
  permissions: z
    .array(Text("Slug.", "documents.read"))
    .optional()
    .describe("Slugs that the key holds directly and through roles."),
  roles: z.array(Text("Name.", "editor")).optional().describe("Names of the key's roles."),
  name: NameOut.optional(),
  ownerId: Text("The owner: the externalId of the identity, else what was stored with the key.", "user_123").optional(),
  meta: Meta.optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  environment: Text("As it was given when the key was created.", "production").optional(),
  identity: z
    .object({
      id: Text("Id of the identity.", "id_7nPq0Rs3Tu6Vw9Xy"),
      externalId: Text("Your own id of it.", "user_123"),
      meta: Meta,
    })
    .optional()
    .describe("The owner of the key."),
  remaining: z
    .int()
    .optional()
    .describe("Credits left after the call, when they were reached; only for limited keys.")
    .meta({ examples: [999] }),
  ratelimit: z
    .object({
      limit: z
        .int()
        .describe("Units per window.")
        .meta({ examples: [100] }),
      remaining: z
        .int()
        .describe("Units left in the window.")
        .meta({ examples: [99] }),
      reset: unixMs("End of the window, Unix milliseconds."),
    })
    .optional()
    .describe(
      "When limits were checked: the first by name that refused; else the limit `default`, else the first by name.",
    ),
});
export type ResponseBody = z.input<typeof ResponseBody>;
