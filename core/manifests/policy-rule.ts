import * as z from "zod";
import { HttpMethod } from "../policies/policy.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import { exactlyOneOf, repeated, setOf, withRules } from "./fields.ts";
import { RulePath } from "./rule-path.ts";

const PathMatch = withRules(
  z.strictObject({
    prefix: RulePath.optional().describe(
      "Matches whole path segments: /orders matches /orders and /orders/7, but not /orders-old.",
    ),
    exact: RulePath.optional().describe("Matches exactly this path."),
  }),
  [exactlyOneOf("prefix", "exact")],
).describe("Path of the request, without the query.");

const Match = z
  .strictObject({
    methods: setOf(HttpMethod, 9).min(1).optional().describe("HTTP methods. Default: all. GET does not include HEAD."),
    path: PathMatch.optional(),
  })
  .describe("Requests to which the rule applies. Default: all.");

const Ratelimit = withRules(
  z.strictObject({
    name: z.string().min(1).max(255).optional().describe("Name of a limit of this rule, counted per key or identity."),
    namespace: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe("Name of a rate-limit namespace (spec.name of a RatelimitNamespace), whose overrides apply."),
    identifier: z
      .enum(["Key", "Identity"])
      .optional()
      .describe(
        "Counter: one per key, or one per identity (a key without an identity has its own). Default with name: Key. Required with namespace.",
      ),
    limit: z.int().min(0).describe("Maximum usage per window; 0 rejects every request."),
    duration: durationOf({ msMin: 1000 }).describe("Length of the window."),
    cost: z.int().min(0).default(1).describe("Cost of one request."),
    async: z
      .boolean()
      .default(false)
      .describe(
        "Whether each pod decides locally and synchronizes in the background: faster, but may admit more than the limit between two synchronizations.",
      ),
  }),
  [
    exactlyOneOf("name", "namespace"),
    {
      rule: "!has(self.namespace) || has(self.identifier)",
      message: "a limit in a namespace requires an identifier: Key or Identity",
      holds: ({ namespace, identifier }) => namespace === undefined || identifier !== undefined,
    },
  ],
).describe("Rate limit. A request is charged to all of its limits, or rejected without a charge.");

/**
 * Returns the name of the counter that a limit uses. Two limits of one rule must not share a counter, because a request would charge it
 * twice.
 */
const counterOf = ({ name, namespace, identifier = "Key", duration }: z.output<typeof Ratelimit>): string =>
  JSON.stringify([name, namespace, identifier, findDuration(duration)]);

/**
 * CEL equivalent of `counterOf`. `namespace` is a reserved word in CEL. The rule compares a list, because comparing long texts pair by pair
 * would exceed the cost budget of a CEL rule.
 */
const celCounterOf = (limit: string): string =>
  `[${[
    `(has(${limit}.name) ? ${limit}.name : '')`,
    `(has(${limit}.__namespace__) ? ${limit}.__namespace__ : '')`,
    `(has(${limit}.identifier) ? ${limit}.identifier : 'Key')`,
    `string(${celMilliseconds(`${limit}.duration`)})`,
  ].join(", ")}]`;

const Ratelimits = withRules(z.array(Ratelimit).max(16), [
  {
    rule: `self.all(a, self.exists_one(b, ${celCounterOf("a")} == ${celCounterOf("b")}))`,
    message: "two limits have the same counter",
    faults: (limits) => repeated(limits, counterOf, "has the same counter as a previous limit"),
  },
]);

/** One rule of an ApiKeyPolicy. */
export const ManifestRule = withRules(
  z.strictObject({
    match: Match.default({}),
    access: z
      .enum(["Key", "Anonymous"])
      .default("Key")
      .describe("Key requires a valid key; Anonymous admits requests without a key."),
    permissions: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .describe("Permission query that the key must satisfy, such as orders.write OR (orders.read AND beta)."),
    credits: z
      .strictObject({
        cost: z.int().min(0).max(1_000_000_000_000).describe("Credits that one request costs."),
      })
      .optional()
      .describe("Cost in credits, for keys with limited credits. Default: 1."),
    ratelimits: Ratelimits.default([]).describe("Rate limits of the request, in addition to those of the key."),
  }),
  [
    {
      rule: "self.access != 'Anonymous' || (!has(self.permissions) && !has(self.credits) && (!has(self.ratelimits) || size(self.ratelimits) == 0))",
      message: "an Anonymous rule cannot require permissions, credits or rate limits, because its requests have no key",
      holds: ({ access, permissions, credits, ratelimits }) =>
        access !== "Anonymous" || (permissions === undefined && credits === undefined && ratelimits.length === 0),
    },
  ],
).describe("Requirements of matching requests. The first match applies.");
export type ManifestRule = z.output<typeof ManifestRule>;
