import * as z from "zod";
import { Code } from "../../../core/verification/codes.ts";
import { Body as VerifyBody } from "../keys/verify-schemas.ts";
import { PolicyId } from "../policies/schemas.ts";
import { KeyId, unixMs } from "../schemas.ts";

/* Request and response of admin.explainVerification (api-v2.md section 24.4). */

export const Body = z.strictObject({
  keyId: KeyId.optional(),
  keyHash: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=$/)
    .optional()
    .describe("Base64 SHA-256 of the secret, instead of `keyId`. The secret itself is never asked for.")
    .meta({ examples: ["n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="] }),
  policyId: PolicyId.optional().describe(
    "Explains a request at the gate of this policy, instead of a call of `keys.verifyKey`.",
  ),
  method: z
    .string()
    .regex(/^[A-Z]{1,20}$/)
    .default("GET")
    .describe("Of the request at the gate.")
    .meta({ examples: ["GET"] }),
  path: z
    .string()
    .min(1)
    .max(4_096)
    .default("/")
    .describe("Of the request at the gate.")
    .meta({ examples: ["/orders"] }),
  clientIp: z
    .string()
    .max(64)
    .optional()
    .describe("The client's address; without it the allow-list of the API is not checked.")
    .meta({ examples: ["10.0.0.1"] }),
  permissions: VerifyBody.shape.permissions,
  credits: VerifyBody.shape.credits,
  ratelimits: VerifyBody.shape.ratelimits,
});
export type Body = z.output<typeof Body>;

const Seen = z.strictObject({
  state: z
    .enum(["found", "gone", "missing", "unreadable", "away"])
    .describe("`missing`: not known, so that a gate answers 503 until it is."),
  version: z
    .int()
    .optional()
    .describe("Of the projected record.")
    .meta({ examples: [812] }),
  problem: z
    .string()
    .optional()
    .describe("Why it cannot be read.")
    .meta({ examples: ["nothing is projected"] }),
});

const STEPS = [
  "path",
  "found",
  "api",
  "workspace",
  "enabled",
  "ofApi",
  "expiry",
  "address",
  "permissions",
  "limits",
  "credits",
] as const;

export const Step = z.strictObject({
  step: z.enum(STEPS).describe("What is checked, in the order of a verification."),
  result: z.enum(["passed", "refused", "skipped"]).describe("`skipped`: there was nothing to check it on."),
  decides: z.boolean().describe("Whether this is the step that decides the code."),
  detail: z
    .string()
    .describe("In words.")
    .meta({ examples: ["The key is disabled."] }),
});
export type Step = z.output<typeof Step>;

const number = (description: string, example: number) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [example] });

export const Limit = z.strictObject({
  name: z
    .string()
    .describe("Name of the limit, or id of its namespace.")
    .meta({ examples: ["requests"] }),
  source: z.enum(["key", "identity", "request", "namespace"]).describe("Whose limit it is."),
  identifier: z
    .string()
    .describe("Who is counted.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  limit: number("Units per window.", 100),
  duration: number("Length of the window, ms.", 60_000),
  cost: number("Units that the request would consume.", 1),
  used: number("Units used in the window, at most `limit`.", 58),
  remaining: number("Units left now.", 42),
  passed: z.boolean().describe("Whether this limit would let the request through."),
  reset: unixMs("When the window ends, Unix ms."),
  overridden: z.boolean().describe("Whether an override of the namespace sets the limit."),
});

export type Limit = z.input<typeof Limit>;

export const Data = z.strictObject({
  code: z
    .union([Code, z.enum(["ANONYMOUS", "MALFORMED", "UNKNOWN"])])
    .describe("What the verification would end with. `UNKNOWN`: a store does not answer, so it is not known."),
  status: number("The status at a gate.", 403),
  keyId: KeyId.optional(),
  keyName: z
    .string()
    .optional()
    .describe("Name of the key.")
    .meta({ examples: ["Billing"] }),
  externalId: z
    .string()
    .optional()
    .describe("Its owner.")
    .meta({ examples: ["user_123"] }),
  apiId: z
    .string()
    .optional()
    .describe("Its API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  stores: z
    .strictObject({
      postgres: Seen.describe("The record in the source of truth."),
      gates: Seen.describe("The record in the store that gates read."),
      isSame: z.boolean().describe("Whether gates have what Postgres has."),
      stalenessMs: number("How old the data of this api-server may be, ms; −1 when unknown.", 850),
    })
    .describe("The key's record in each store."),
  rule: z
    .int()
    .optional()
    .describe("At a gate: the rule that matched, −1 for the implicit one.")
    .meta({ examples: [0] }),
  mode: z
    .string()
    .optional()
    .describe("At a gate: `Audit` lets the request through whatever the code is.")
    .meta({ examples: ["Enforce"] }),
  steps: z.array(Step).describe("Each step, also those after the one that decides."),
  permissions: z
    .strictObject({
      needed: z
        .array(
          z.strictObject({
            slug: z
              .string()
              .describe("A permission that the query names.")
              .meta({ examples: ["orders.write"] }),
            isHeld: z.boolean().describe("Whether the key satisfies it."),
          }),
        )
        .describe("Those that the query names."),
      held: z
        .array(
          z.strictObject({
            slug: z
              .string()
              .describe("A permission that the key holds.")
              .meta({ examples: ["orders.read"] }),
            isDirect: z.boolean().describe("Whether it holds it itself."),
            roles: z.array(z.string().meta({ examples: ["editor"] })).describe("The roles through which it holds it."),
          }),
        )
        .describe("At most 200."),
      heldCount: number("How many it holds.", 3),
    })
    .describe("What is asked for, and what the key holds."),
  limits: z.array(Limit).describe("Each limit that would be charged."),
  credits: z
    .strictObject({
      remaining: number("Credits left now.", 1_000),
      cost: number("Credits that the request would spend.", 1),
      passed: z.boolean().describe("Whether they are enough."),
    })
    .optional()
    .describe("Only for limited keys."),
  now: unixMs("When this was decided, Unix ms."),
});
export type Data = z.input<typeof Data>;
