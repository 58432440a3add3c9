import * as z from "zod";
import { SOURCE_KINDS, STEPS } from "../../../core/explanation/shapes.ts";
import { Code } from "../../../core/verification/codes.ts";
import { DataPlane, PolicyId } from "../policies/schemas.ts";
import { KeyId, unixMs } from "../schemas.ts";
import { Body as VerifyBody } from "./verify-schemas.ts";

/* Shared schemas of keys.explainVerification and admin.explainVerification (api-v2.md sections 24.2 and 24.4). */

const text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const number = (description: string, example: number) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [example] });

/** Request fields, besides the one that identifies the key. */
export const ASKED = {
  policyId: PolicyId.optional().describe(
    "Explains a request at the gate of this policy, instead of a call of `keys.verifyKey`.",
  ),
  method: z
    .string()
    .regex(/^[A-Z]{1,20}$/)
    .default("GET")
    .describe("Of the request at the gate.")
    .meta({ examples: ["POST"] }),
  path: z
    .string()
    .min(1)
    .max(4_096)
    .default("/")
    .describe("Of the request at the gate; a query is ignored.")
    .meta({ examples: ["/orders"] }),
  clientIp: z
    .string()
    .min(2)
    .max(64)
    .optional()
    .meta({ examples: ["10.0.0.1"] }),
  permissions: VerifyBody.shape.permissions,
  credits: VerifyBody.shape.credits,
  ratelimits: VerifyBody.shape.ratelimits,
};
const Asked = z.strictObject(ASKED);
export type Asked = z.output<typeof Asked>;

const Seen = z.strictObject({
  state: z
    .enum(["found", "gone", "missing", "unreadable", "away"])
    .describe("`missing`: not known, so that a gate answers 503 until it is."),
  version: number("Of the projected record.", 812).optional(),
  problem: text("Why it cannot be read.", "nothing is projected").optional(),
});

const AGE = "How old what is known of it may be, ms; −1 when that is not known.";

const SourceOut = z.strictObject({
  kind: z.enum(SOURCE_KINDS).describe("What it is."),
  id: text("Its id; empty where it has none.", "role_6dEf8Gh0Jk2Lm4Np"),
  name: text("Its name; of an override the identifier or pattern, of an identity your id of it.", "editor").optional(),
  ageMs: number(AGE, 850),
});

const StepOut = z.strictObject({
  step: z.enum(STEPS).describe("What is checked, in the order of a verification."),
  result: z.enum(["passed", "refused", "skipped"]).describe("`skipped`: there was nothing to check it on."),
  decisive: z.boolean().describe("Whether this is the step that decides the code."),
  observed: text("The value that was looked at; empty for none.", "disabled"),
  detail: text("In words.", "The key is disabled."),
  sources: z.array(SourceOut).describe("Where the value comes from."),
});

const LimitOut = z.strictObject({
  name: text("Name of the limit, or id of its namespace.", "requests"),
  namespace: text("Name of its namespace, where that is known.", "public-api").optional(),
  source: z.enum(["key", "identity", "request", "rule", "namespace"]).describe("Whose limit it is."),
  identifier: text("Who is counted.", "key_4fGh7Jk2LmN8pQrS"),
  limit: number("Units per window.", 100),
  duration: number("Length of the window, ms.", 60_000),
  cost: number("Units that the request would consume.", 1),
  used: number("Units used in the window, at most `limit`.", 58),
  remaining: number("Units left now.", 42),
  passed: z.boolean().describe("Whether this limit would let the request through."),
  reset: unixMs("When the window ends, Unix ms."),
  retryAt: unixMs("When a refused request could pass, Unix ms, if nothing else consumes until then.").optional(),
  async: z.boolean().describe("Counted in each process and synced in the background, so each may know it differently."),
  overridden: z.boolean().describe("Whether an override of the namespace sets the limit."),
  override: z
    .strictObject({
      id: text("Id of the override.", "rlor_3mNp5Qr7St9Uv2Wx"),
      identifier: text("Its identifier, or the pattern that matches.", "partner_*"),
      limitBefore: number("The limit that it replaces.", 100),
      durationBefore: number("The length of the window that it replaces, ms.", 60_000),
    })
    .optional()
    .describe("The override that sets the limit."),
});

/** The key's record in each store. */
export const StoresOut = z.strictObject({
  postgres: Seen.describe("The record in the source of truth."),
  gates: Seen.describe("The record in the store that gates read."),
  isSame: z.boolean().describe("Whether gates have what Postgres has."),
  stalenessMs: number("How old the data of this api-server may be, ms; −1 when unknown.", 850),
});

const PermissionsOut = z.strictObject({
  needed: z
    .array(
      z.strictObject({
        slug: text("A permission that the query names.", "orders.write"),
        isHeld: z.boolean().describe("Whether the key satisfies it."),
        by: z
          .array(
            z.strictObject({
              slug: text("A permission of the key that satisfies it.", "orders.*"),
              role: text(
                "The role through which the key has it; left out when the key has it itself.",
                "editor",
              ).optional(),
            }),
          )
          .describe("Through what, at most 10."),
      }),
    )
    .describe("Those that the query names."),
  held: z
    .array(
      z.strictObject({
        slug: text("A permission that the key holds.", "orders.read"),
        isDirect: z.boolean().describe("Whether it holds it itself."),
        roles: z.array(z.string().meta({ examples: ["editor"] })).describe("The roles through which it holds it."),
      }),
    )
    .describe("At most 200."),
  heldCount: number("How many it holds.", 3),
});

export const ExplainedOut = z.strictObject({
  code: z
    .union([Code, z.enum(["ANONYMOUS", "MALFORMED", "UNKNOWN"])])
    .describe(
      "What the verification would end with. `UNKNOWN`: a store does not answer, and the verification is not decided without it. While the counters are away, `VALID` is what is decided without them, as the steps `limits` and `credits` say.",
    ),
  allowed: z
    .boolean()
    .describe("Whether the request would be let through: also what a policy in mode `Audit` only counts."),
  status: number("The status at a gate; 200 stands for what the app answers.", 403),
  retryAfter: number("Whole seconds until a refused request may pass.", 12).optional(),
  keyId: KeyId.optional(),
  keyName: text("Name of the key.", "Billing").optional(),
  externalId: text("Your own id of its owner.", "user_123").optional(),
  apiId: text("Its API.", "api_9xKp3Rt6VwY1zAbC").optional(),
  rule: number("At a gate: the rule that matched, from 0, −1 for the implicit one.", 0).optional(),
  dataPlane: DataPlane.omit({ podIds: true })
    .optional()
    .describe("At a gate: what its sidecars report; left out while the store that they report to is away."),
  mode: text("At a gate: `Audit` lets the request through whatever the code is.", "Enforce").optional(),
  steps: z.array(StepOut).describe("Each step, also those after the one that decides."),
  permissions: PermissionsOut.describe("What is asked for, and what the key holds."),
  limits: z.array(LimitOut).describe("Each limit that would be charged."),
  credits: z
    .strictObject({
      remaining: number("Credits left now.", 1_000),
      cost: number("Credits that the request would spend.", 1),
      passed: z.boolean().describe("Whether they are enough."),
      refill: z
        .strictObject({
          interval: z.enum(["daily", "monthly"]).describe("How often credits are added."),
          amount: number("How many.", 1_000),
          refillDay: number("The day of the month, for monthly refills.", 1).optional(),
        })
        .optional()
        .describe("How credits come back; left out when they do not."),
    })
    .optional()
    .describe("Only for limited keys."),
  now: unixMs("When this was decided, Unix ms."),
});
export type ExplainedOut = z.input<typeof ExplainedOut> & { readonly stores: z.input<typeof StoresOut> };
