import * as z from "zod";
import { EXPIRES_MAX_MS } from "../keys/expires-max.ts";
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
      "The Kubernetes namespace of that ApiKeyPolicy, if it is another one; its allowedNamespaces must list this one.",
    ),
  })
  .describe("The ApiKeyPolicy whose API the key is for. It cannot be changed.");

const ApiRef = z
  .strictObject({
    id: z
      .string()
      .min(8)
      .max(255)
      .regex(/^[a-zA-Z0-9_]+$/)
      .describe(
        "Id of the API in the store. One that a policy made must allow this namespace by its allowedNamespaces.",
      ),
  })
  .describe("The API that the key is for, by its id, in place of policyRef. It cannot be changed.");

const RoleName = z.string().min(1).max(100);
const Slug = z
  .string()
  .min(3)
  .max(100)
  .regex(/^[a-zA-Z0-9_:\-.*]+$/, { error: "expected a permission: letters, digits and _ : - . *" });

const KeyRatelimit = z
  .strictObject({
    name: z.string().min(3).max(128).describe("The limit's name, by which verifications refer to it."),
    limit: z.int().min(1).describe("How much may be used in one window."),
    duration: durationOf({ msMin: 1000 }).describe("The length of the window, such as 60s; at least 1s."),
    autoApply: z.boolean().default(false).describe("Whether every request is charged, without naming the limit."),
  })
  .describe("A rate limit of the key itself.");

const Refill = withRules(
  z.strictObject({
    interval: z.enum(["daily", "monthly"]).describe("How often credits are added, at midnight UTC."),
    amount: z.int().min(1).describe("Credits added at each refill."),
    refillDay: z
      .int()
      .min(1)
      .max(31)
      .optional()
      .describe("Day of the month, needed with monthly and with it alone; in a shorter month its last day."),
  }),
  [
    {
      rule: "(self.interval == 'monthly') == has(self.refillDay)",
      message: "refillDay is needed with monthly, and only with it",
      holds: ({ interval, refillDay }) => (interval === "monthly") === (refillDay !== undefined),
    },
  ],
).describe("How credits come back. Without it they do not.");

/** Requires an RFC 3339 text and an existing day. */
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
      .describe("The age at which the key is replaced; at least 1m. Without it only a deleted Secret replaces it."),
    overlap: durationOf({ msMin: 0 })
      .default("1h")
      .describe("How long the former key still works; shorter than `every`. Apps read the Secret again within it."),
  }),
  [
    {
      rule: `!has(self.every) || ${celMilliseconds("self.every")} > ${celMilliseconds("self.overlap")}`,
      message: "every must be longer than overlap",
      holds: ({ every, overlap }) => {
        const [everyMs, overlapMs] = [every === undefined ? undefined : findDuration(every), findDuration(overlap)];
        return everyMs === undefined || overlapMs === undefined || everyMs > overlapMs;
      },
    },
  ],
).describe("How the key is replaced by another one.");

const fixed = (field: string, message: string): Rule<unknown> => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message,
});

/** A key for an app, whose secret is written to a Secret. */
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
      .describe("Your own id of the key's owner (externalId), whose limits and metadata its keys share."),
    name: withRules(nameOf({ min: 1, max: 200 }), [
      {
        rule: `!self.endsWith('${BEING_ISSUED}')`,
        message: `must not end with${BEING_ISSUED}`,
        holds: (name) => !name.endsWith(BEING_ISSUED),
      },
    ])
      .optional()
      .describe("A name for people. Without it the object's own."),
    roles: setOf(RoleName, 100)
      .default([])
      .describe("Names of roles in the store (spec.name of a Role), which must exist."),
    permissions: setOf(Slug, 500)
      .default([])
      .describe("Slugs of permissions that the key has besides its roles'. Missing ones are created."),
    ratelimits: withRules(z.array(KeyRatelimit).max(50), [
      {
        rule: "self.all(a, self.exists_one(b, [a.name] == [b.name]))",
        message: "two of these limits have one name",
        faults: (limits) => repeated(limits, ({ name }) => name, "has the name of a limit above it"),
      },
    ])
      .default([])
      .describe("Limits of the key itself. Its successors have them too, and count from zero."),
    credits: z
      .strictObject({
        remaining: z
          .int()
          .min(0)
          .describe(
            "Credits of the first key. A successor gets what is left; keys.updateCredits changes the number later.",
          ),
        refill: Refill.optional(),
      })
      .optional()
      .describe("How much the key may spend. Without it, without limit."),
    expires: Time.optional().describe(
      "When the key ends, such as 2027-01-31T00:00:00Z. There is no successor after it. Without it, never.",
    ),
    secretRef: z
      .strictObject({
        name: ObjectName.describe(
          "metadata.name of the Secret, in the namespace of this object. It is created; an existing one that is not of this object is never touched.",
        ),
        key: z
          .string()
          .min(1)
          .max(253)
          .regex(/^([-_a-zA-Z0-9]|[.][-_a-zA-Z0-9])[-._a-zA-Z0-9]*$/, { error: "expected the key of a Secret's data" })
          .default("key")
          .describe("The key of the Secret's data that has the API key."),
      })
      .describe("Where the API key is put. It cannot be changed."),
    rotation: Rotation.optional(),
  }),
  [
    exactlyOneOf("policyRef", "apiRef"),
    fixed("policyRef", "a key cannot move to another API; make another ApiKey"),
    fixed("apiRef", "a key cannot move to another API; make another ApiKey"),
    {
      rule: "self.secretRef == oldSelf.secretRef",
      message: "a key cannot move to another Secret; make another ApiKey",
    },
  ],
).describe("An API key for an app, put into a Secret and rotated there.");
export type ApiKeySpec = z.output<typeof ApiKeySpec>;

const time = (what: string) => z.iso.datetime().optional().describe(what);

export const ApiKeyStatus = z.object({
  ...statusFields,
  keyId: storeId("the key that is in the Secret"),
  apiId: storeId("the API that the key is for"),
  expiresAt: time("When the key ends."),
  nextRotation: time("When the key is replaced by its successor."),
});
export type ApiKeyStatus = z.output<typeof ApiKeyStatus>;
