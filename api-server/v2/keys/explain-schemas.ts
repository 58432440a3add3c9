import * as z from "zod";
import { SOURCE_KINDS, STEPS } from "../../../core/explanation/shapes.ts";
import { HOST } from "../../../core/policies/check-path.ts";
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

/** Request fields of both procedures, except the one that identifies the key. */
export const ASKED = {
  policyId: PolicyId.optional().describe(
    "Explains a request at the gate of this policy, instead of a call of `keys.verifyKey`.",
  ),
  method: z
    .string()
    .regex(/^[A-Z]{1,20}$/)
    .default("GET")
    .describe("Method of the request at the gate.")
    .meta({ examples: ["POST"] }),
  path: z
    .string()
    .min(1)
    .max(4_096)
    .default("/")
    .describe("Path of the request at the gate; a query string is ignored.")
    .meta({ examples: ["/orders"] }),
  host: z
    .string()
    .min(1)
    .max(255)
    .regex(HOST)
    .optional()
    .describe("Host of the request at the gate.")
    .meta({ examples: ["api.example.com"] }),
  headers: z
    .array(
      z.strictObject({
        name: z
          .string()
          .min(1)
          .max(128)
          .describe("Name of the header.")
          .meta({ examples: ["X-Api-Version"] }),
        value: z
          .string()
          .max(1024)
          .describe("Value of the header.")
          .meta({ examples: ["2"] }),
      }),
    )
    .max(32)
    .optional()
    .describe("Headers of the request at the gate. Needed only if rules match them or limits count by them.")
    .meta({ examples: [[{ name: "X-Api-Version", value: "2" }]] }),
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
    .describe("State of the record. `missing`: the store does not have it, so a gate responds with 503."),
  version: number("Version of the projected record.", 812).optional(),
  problem: text("Reason why the record cannot be read.", "nothing is projected").optional(),
});

const AGE = "Maximum age of the data about the record, ms; −1 if it is unknown.";

const SourceOut = z.strictObject({
  kind: z.enum(SOURCE_KINDS).describe("Kind of the record."),
  id: text("Id of the record; empty if it has none.", "role_6dEf8Gh0Jk2Lm4Np"),
  name: text(
    "Name of the record; for an override its identifier or pattern, for an identity its external id.",
    "editor",
  ).optional(),
  ageMs: number(AGE, 850),
});

const StepOut = z.strictObject({
  step: z
    .enum(STEPS)
    .describe("Check that this step performs. Steps are listed in the order in which a verification performs them."),
  result: z
    .enum(["passed", "refused", "skipped"])
    .describe("Result of the step. `skipped`: the request has no value to check."),
  decisive: z.boolean().describe("Whether this step determines the code."),
  observed: text("Checked value; empty if the step has none.", "disabled"),
  detail: text("Description of the result.", "The key is disabled."),
  sources: z.array(SourceOut).describe("Source of the value."),
});

const LimitOut = z.strictObject({
  name: text("Name of the limit, or id of its rate-limit namespace.", "requests"),
  namespace: text("Name of the rate-limit namespace, if known.", "public-api").optional(),
  source: z.enum(["key", "identity", "request", "rule", "namespace"]).describe("Owner of the limit."),
  identifier: text("Identifier whose requests the limit counts.", "key_4fGh7Jk2LmN8pQrS"),
  limit: number("Units per window.", 100),
  duration: number("Window length in ms.", 60_000),
  cost: number("Units that the request would consume.", 1),
  used: number("Units used in the window, at most `limit`.", 58),
  remaining: number("Units that remain now.", 42),
  passed: z.boolean().describe("Whether this limit would admit the request."),
  reset: unixMs("When the window ends, Unix ms."),
  retryAt: unixMs(
    "When a rejected request would be within the limit, Unix ms, if no other request consumes units until then.",
  ).optional(),
  async: z
    .boolean()
    .describe(
      "Whether each process counts by itself and syncs in the background, so the counts of processes may differ.",
    ),
  overridden: z.boolean().describe("Whether an override of the namespace sets the limit."),
  override: z
    .strictObject({
      id: text("Id of the override.", "rlor_3mNp5Qr7St9Uv2Wx"),
      identifier: text("Identifier of the override, which may be a pattern.", "partner_*"),
      limitBefore: number("The limit that it replaces.", 100),
      durationBefore: number("Length of the window that it replaces, ms.", 60_000),
    })
    .optional()
    .describe("The override that sets the limit."),
});

/** The key's record in each store. */
export const StoresOut = z.strictObject({
  postgres: Seen.describe("The record in Postgres, the source of truth."),
  gates: Seen.describe("The record in Redis, from which gates read."),
  isSame: z.boolean().describe("Whether the record in Redis equals the one in Postgres."),
  stalenessMs: number("Maximum age of this api-server's data, ms; −1 if it is unknown.", 850),
});

const PermissionsOut = z.strictObject({
  needed: z
    .array(
      z.strictObject({
        slug: text("A permission in the query.", "orders.write"),
        isHeld: z.boolean().describe("Whether the key satisfies the permission."),
        by: z
          .array(
            z.strictObject({
              slug: text("A permission of the key that satisfies the queried permission.", "orders.*"),
              role: text(
                "Role through which the key holds the permission; omitted if the key holds it directly.",
                "editor",
              ).optional(),
            }),
          )
          .describe("Permissions of the key that satisfy the queried permission, at most 10."),
      }),
    )
    .describe("Permissions in the query."),
  held: z
    .array(
      z.strictObject({
        slug: text("A permission that the key holds.", "orders.read"),
        isDirect: z.boolean().describe("Whether the key holds the permission directly."),
        roles: z
          .array(z.string().meta({ examples: ["editor"] }))
          .describe("Roles that grant the permission to the key."),
      }),
    )
    .describe("Permissions of the key, at most 200."),
  heldCount: number("Number of permissions that the key holds.", 3),
});

export const ExplainedOut = z.strictObject({
  code: z
    .union([Code, z.enum(["ANONYMOUS", "DENIED", "MALFORMED", "TOO_MANY_ATTEMPTS", "UNKNOWN"])])
    .describe(
      "Code that the verification would return. `UNKNOWN`: a database does not respond, and the verification cannot be decided without it. While the counters are unavailable, `VALID` is the decision without them; see the steps `limits` and `credits`.",
    ),
  allowed: z
    .boolean()
    .describe("Whether the request would be admitted. A policy in mode `Audit` only records a rejection."),
  status: number("HTTP status at a gate; 200 stands for the app's own status.", 403),
  retryAfter: number("Seconds after which a rejected request can be retried; an integer.", 12).optional(),
  keyId: KeyId.optional(),
  keyName: text("Name of the key.", "Billing").optional(),
  externalId: text("The owner's external id in your system.", "user_123").optional(),
  apiId: text("Id of the key's API.", "api_9xKp3Rt6VwY1zAbC").optional(),
  rule: number("Index of the matching rule, from 0, for a request at a gate; −1 for the implicit rule.", 0).optional(),
  ruleName: text(
    "Name of the matching rule, for a request at a gate; omitted if the rule has no name.",
    "refund",
  ).optional(),
  dataPlane: DataPlane.omit({ podIds: true })
    .optional()
    .describe(
      "Reports by the gates of the policy; only for an explanation at a gate, and omitted while Redis is unavailable.",
    ),
  mode: text(
    "Mode of the policy; only for an explanation at a gate. `Audit` admits the request whatever the code is.",
    "Enforce",
  ).optional(),
  steps: z.array(StepOut).describe("All steps, including those after the decisive one."),
  permissions: PermissionsOut.describe("Required permissions, and the permissions of the key."),
  limits: z.array(LimitOut).describe("Limits that would be charged."),
  credits: z
    .strictObject({
      remaining: number("Credits that remain now.", 1_000),
      cost: number("Credits that the request would spend.", 1),
      passed: z.boolean().describe("Whether the remaining credits suffice."),
      refill: z
        .strictObject({
          interval: z.enum(["daily", "monthly"]).describe("Interval of the refill."),
          amount: number("Credits added at each refill.", 1_000),
          refillDay: number("Day of the month, for monthly refills.", 1).optional(),
        })
        .optional()
        .describe("Refill of the credits; omitted if the credits are not refilled."),
    })
    .optional()
    .describe("Credits of the key; omitted if they are unlimited."),
  now: unixMs("When this was decided, Unix ms."),
});
export type ExplainedOut = z.input<typeof ExplainedOut> & { readonly stores: z.input<typeof StoresOut> };
