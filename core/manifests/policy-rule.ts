import * as z from "zod";
import { HttpMethod } from "../policies/policy.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import { exactlyOneOf, repeated, setOf, withRules } from "./fields.ts";
import { RulePath } from "./rule-path.ts";

const PathMatch = withRules(
  z.strictObject({
    prefix: RulePath.optional().describe(
      "Matches the path and everything under it, by whole segments: /orders matches /orders and /orders/7, not /orders-old.",
    ),
    exact: RulePath.optional().describe("Matches only this path."),
  }),
  [exactlyOneOf("prefix", "exact")],
).describe("The path of the request, without the query.");

const Match = z
  .strictObject({
    methods: setOf(HttpMethod, 9)
      .min(1)
      .optional()
      .describe("HTTP methods; without them every method matches. HEAD is not implied by GET."),
    path: PathMatch.optional(),
  })
  .describe("Which requests the rule applies to; without it, all.");

const Ratelimit = withRules(
  z.strictObject({
    name: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe("A limit of this rule's own, counted under this name per key or identity."),
    namespace: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe("The name of a rate-limit namespace (spec.name of a RatelimitNamespace), whose overrides apply."),
    identifier: z
      .enum(["key", "identity"])
      .optional()
      .describe(
        "What is counted: each key separately, or all keys of an identity together (a key without an identity is counted separately). Default for a limit with a name: key.",
      ),
    limit: z.int().min(0).describe("How much may be used in one window; 0 refuses everything."),
    duration: durationOf({ msMin: 1000 }).describe("The length of the window, such as 60s; at least 1s."),
    cost: z.int().min(0).default(1).describe("How much one request uses."),
    async: z
      .boolean()
      .default(false)
      .describe(
        "Decide in each pod at once and sync counts in the background: faster, and may admit more than the limit between two syncs.",
      ),
  }),
  [
    exactlyOneOf("name", "namespace"),
    {
      rule: "!has(self.namespace) || has(self.identifier)",
      message: "a limit in a namespace needs an identifier: key or identity",
      holds: ({ namespace, identifier }) => namespace === undefined || identifier !== undefined,
    },
  ],
).describe("A rate limit. Of several, either all are charged or none.");

/** Returns the counter of a limit: two limits of a rule with one counter would charge it twice. */
const counterOf = ({ name, namespace, identifier = "key", duration }: z.output<typeof Ratelimit>): string =>
  JSON.stringify([name, namespace, identifier, findDuration(duration)]);

/**
 * The CEL equivalent, in which `namespace` is a reserved word. Compares a list, because comparing long texts pair by pair exceeds the cost
 * budget of a rule.
 */
const celCounterOf = (limit: string): string =>
  `[${[
    `(has(${limit}.name) ? ${limit}.name : '')`,
    `(has(${limit}.__namespace__) ? ${limit}.__namespace__ : '')`,
    `(has(${limit}.identifier) ? ${limit}.identifier : 'key')`,
    `string(${celMilliseconds(`${limit}.duration`)})`,
  ].join(", ")}]`;

const Ratelimits = withRules(z.array(Ratelimit).max(16), [
  {
    rule: `self.all(a, self.exists_one(b, ${celCounterOf("a")} == ${celCounterOf("b")}))`,
    message: "two of these limits count on the same counter",
    faults: (limits) => repeated(limits, counterOf, "counts on the same counter as a limit above it"),
  },
]);

/** One rule of an ApiKeyPolicy. */
export const ManifestRule = withRules(
  z.strictObject({
    match: Match.default({}),
    access: z
      .enum(["Key", "Anonymous"])
      .default("Key")
      .describe("Key requires a valid key; Anonymous lets the request through without one."),
    permissions: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .describe("A permission query that the key must satisfy, such as: orders.write OR (orders.read AND beta)."),
    credits: z
      .strictObject({
        cost: z.int().min(0).max(1_000_000_000_000).describe("Credits that one request spends of a limited key."),
      })
      .optional()
      .describe("Without it a request costs one credit; only keys with limited credits are charged."),
    ratelimits: Ratelimits.default([]).describe(
      "Rate limits that a request is charged to, in addition to those of the key itself.",
    ),
  }),
  [
    {
      rule: "self.access != 'Anonymous' || (!has(self.permissions) && !has(self.credits) && (!has(self.ratelimits) || size(self.ratelimits) == 0))",
      message: "an Anonymous rule has no key to ask for permissions, credits or rate limits",
      holds: ({ access, permissions, credits, ratelimits }) =>
        access !== "Anonymous" || (permissions === undefined && credits === undefined && ratelimits.length === 0),
    },
  ],
).describe("What a request needs. The first rule that matches decides.");
export type ManifestRule = z.output<typeof ManifestRule>;
