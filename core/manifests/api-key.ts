import * as z from "zod";
import { EXPIRES_MAX_MS } from "../keys/key-hash.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import {
  exactlyOneOf,
  NamespaceName,
  nameOf,
  ObjectName,
  type Rule,
  repeated,
  setOf,
  statusFields,
  storeId,
  withRules,
} from "./fields.ts";

/** Suffix of the stored name of a key whose secret is not yet in the Secret. A manifest's name must not end with it. */
export const BEING_ISSUED = " (being issued)";

const PolicyRef = z
  .strictObject({
    name: ObjectName.describe("metadata.name of an ApiKeyPolicy."),
    namespace: NamespaceName.optional().describe(
      "Kubernetes namespace of the ApiKeyPolicy; its allowedNamespaces must list this one. Default: the namespace of this object.",
    ),
  })
  .describe("ApiKeyPolicy whose API issues the key. Immutable.");

const ApiRef = z
  .strictObject({
    id: z
      .string()
      .min(8)
      .max(255)
      .regex(/^[a-zA-Z0-9_]+$/)
      .describe("Id of the API. If a policy created it, allowedNamespaces of the policy must list this namespace."),
  })
  .describe("API that issues the key, by id. Alternative to policyRef. Immutable.");

const RoleName = z.string().min(1).max(100);
const Slug = z
  .string()
  .min(3)
  .max(100)
  .regex(/^[a-zA-Z0-9_:\-.*]+$/, { error: "expected a permission: letters, digits and _ : - . *" });

const KeyRatelimit = z
  .strictObject({
    name: z.string().min(3).max(128).describe("Name of the limit in verifications."),
    limit: z.int().min(1).describe("Maximum usage per window."),
    duration: durationOf({ msMin: 1000 }).describe("Length of the window."),
    autoApply: z
      .boolean()
      .default(false)
      .describe("Whether every request is charged, even if it does not name the limit."),
  })
  .describe("A rate limit of the key itself.");

const Refill = withRules(
  z.strictObject({
    interval: z.enum(["Daily", "Monthly"]).describe("Interval of the refills. They happen at midnight UTC."),
    amount: z.int().min(1).describe("Credits per refill."),
    refillDay: z.int().min(1).max(31).optional().describe("Day of a monthly refill; in a shorter month, its last day."),
  }),
  [
    {
      rule: "(self.interval == 'Monthly') == has(self.refillDay)",
      message: "refillDay is required with Monthly, and is not allowed otherwise",
      holds: ({ interval, refillDay }) => (interval === "Monthly") === (refillDay !== undefined),
    },
  ],
).describe("Periodic refill. Default: no refill.");

/** Returns whether the text is an RFC 3339 time on an existing day. */
const isTime = (text: string): boolean => z.iso.datetime({ offset: true }).safeParse(text).success;
const TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$/;
const EXPECTED_TIME = "expected a time such as 2027-01-31T00:00:00Z, between 1970 and 2100";

const Time = withRules(z.string().max(35).regex(TIME, { error: EXPECTED_TIME }), [
  {
    rule: `timestamp(self) >= timestamp('1970-01-01T00:00:00Z') && timestamp(self) <= timestamp('${new Date(EXPIRES_MAX_MS).toISOString()}')`,
    message: EXPECTED_TIME,
    holds: (text) => !TIME.test(text) || (isTime(text) && isExpiry(Date.parse(text))),
  },
]);

const isExpiry = (ms: number): boolean => ms >= 0 && ms <= EXPIRES_MAX_MS;

const Rotation = withRules(
  z.strictObject({
    every: durationOf({ msMin: 60_000 })
      .optional()
      .describe("Age at which a new key replaces the key. Default: a new key only after the Secret is deleted."),
    overlap: durationOf({ msMin: 0 })
      .default("1h")
      .describe("Time for which the previous key still works; apps must reload the Secret within this time."),
  }),
  [
    {
      rule: `!has(self.every) || ${celMilliseconds("self.every")} > ${celMilliseconds("self.overlap")}`,
      message: "`every` must be longer than `overlap`",
      holds: ({ every, overlap }) => {
        const [everyMs, overlapMs] = [every === undefined ? undefined : findDuration(every), findDuration(overlap)];
        return everyMs === undefined || overlapMs === undefined || everyMs > overlapMs;
      },
    },
  ],
).describe("Rotation of the key.");

const fixed = (field: string, message: string): Rule<unknown> => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message,
});

/** A key for an app. The operator writes the key to a Secret. */
export const ApiKeySpec = withRules(
  z.strictObject({
    policyRef: PolicyRef.optional(),
    apiRef: ApiRef.optional(),
    owner: z
      .string()
      .min(1)
      .max(255)
      .regex(/^[a-zA-Z0-9_.-]+$/, { error: "expected letters, digits and _ . -" })
      .optional()
      .describe(
        "Your id of the owner (externalId of the identity). All keys of an owner share its limits and metadata.",
      ),
    name: withRules(nameOf({ min: 1, max: 200 }), [
      {
        rule: `!self.endsWith('${BEING_ISSUED}')`,
        message: `must not end with${BEING_ISSUED}`,
        holds: (name) => !name.endsWith(BEING_ISSUED),
      },
    ])
      .optional()
      .describe("Display name. Default: the name of this object."),
    roles: setOf(RoleName, 100).default([]).describe("Names of existing roles (spec.name of a Role)."),
    permissions: setOf(Slug, 500)
      .default([])
      .describe("Slugs of direct permissions, in addition to those of the roles. Missing permissions are created."),
    ratelimits: withRules(z.array(KeyRatelimit).max(50), [
      {
        rule: "self.all(a, self.exists_one(b, [a.name] == [b.name]))",
        message: "two limits have the same name",
        faults: (limits) => repeated(limits, ({ name }) => name, "has the same name as a previous limit"),
      },
    ])
      .default([])
      .describe("Rate limits of the key. A new key after a rotation has the same limits and starts at zero."),
    credits: z
      .strictObject({
        remaining: z
          .int()
          .min(0)
          .describe(
            "Credits of the first key. A rotation transfers the remaining credits; keys.updateCredits changes them.",
          ),
        refill: Refill.optional(),
      })
      .optional()
      .describe("Credits of the key. Default: unlimited."),
    expires: Time.optional().describe(
      "Expiry time, such as 2027-01-31T00:00:00Z. Rotation stops at this time. Default: never.",
    ),
    secretRef: z
      .strictObject({
        name: ObjectName.describe(
          "Name of the Secret, which is created in the namespace of this object. A Secret of another owner is not changed.",
        ),
        key: z
          .string()
          .min(1)
          .max(253)
          .regex(/^([-_a-zA-Z0-9]|[.][-_a-zA-Z0-9])[-._a-zA-Z0-9]*$/, { error: "expected the key of a Secret's data" })
          .default("key")
          .describe("Entry in the Secret's `data` that contains the key."),
      })
      .describe("Secret that contains the API key. Immutable."),
    rotation: Rotation.optional(),
  }),
  [
    exactlyOneOf("policyRef", "apiRef"),
    fixed("policyRef", "a key cannot move to another API; create another ApiKey"),
    fixed("apiRef", "a key cannot move to another API; create another ApiKey"),
    {
      rule: "self.secretRef == oldSelf.secretRef",
      message: "a key cannot move to another Secret; create another ApiKey",
    },
  ],
).describe("API key for an app, stored in a Secret and rotated there.");
export type ApiKeySpec = z.output<typeof ApiKeySpec>;

const time = (what: string) => z.iso.datetime().optional().describe(what);

export const ApiKeyStatus = z.object({
  ...statusFields,
  keyId: storeId("the key in the Secret"),
  apiId: storeId("the API of the key"),
  expiresAt: time("Expiry time of the key."),
  nextRotation: time("Time of the next rotation."),
});
export type ApiKeyStatus = z.output<typeof ApiKeyStatus>;
