import * as z from "zod";
import { COUNTED_BY_MAX, CountedBy, HttpMethod, RULE_NAME } from "../policies/policy.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import { exactlyOneOf, HeaderName, repeated, setOf, withRules } from "./fields.ts";
import { RulePath, TemplatePath } from "./rule-path.ts";

const PathMatch = withRules(
  z.strictObject({
    prefix: RulePath.optional().describe(
      "Matches whole path segments: /orders matches /orders and /orders/7, but not /orders-old.",
    ),
    exact: RulePath.optional().describe("Matches exactly this path."),
    template: TemplatePath.optional().describe(
      "Matches paths with parameters: {name} is one segment, and {name...} as the last segment is the rest, such as /orders/{order}/refund.",
    ),
  }),
  [exactlyOneOf("prefix", "exact", "template")],
).describe("Path of the request, without the query.");

const HOST_NAME = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const Host = z
  .string()
  .min(1)
  // `abort` skips the regular expression if the text is too long, because matching megabytes of text would overflow the stack.
  .max(253, { abort: true })
  .regex(HOST_NAME, {
    error: "expected a host name in lower case without a port, such as api.example.com or *.example.com",
  });

const HeaderMatch = withRules(
  z.strictObject({
    name: HeaderName.describe("Name of the header, case-insensitive."),
    exact: z
      .string()
      .min(1)
      .max(256)
      .regex(/^[!-~]([ -~]*[!-~])?$/, { error: "expected visible ASCII characters, without spaces at the ends" })
      .optional()
      .describe("Value of the header, compared case-sensitively."),
    present: z.literal(true).optional().describe("Any value matches."),
  }),
  [
    exactlyOneOf("exact", "present"),
    {
      rule: "self.name.lowerAscii() != 'host'",
      message: "use `hosts` to match the Host header",
      holds: ({ name }) => name.toLowerCase() !== "host",
    },
  ],
).describe(
  "A request with this header twice, or with _ in place of - in its name, gets 400, because apps disagree on its value.",
);

const Match = z
  .strictObject({
    methods: setOf(HttpMethod, 9).min(1).optional().describe("HTTP methods. Default: all. GET does not include HEAD."),
    path: PathMatch.optional(),
    hosts: setOf(Host, 16)
      .min(1)
      .optional()
      .describe(
        "Hosts of the request, without a port; *.example.com matches every name below example.com. Default: all.",
      ),
    headers: z
      .array(HeaderMatch)
      .min(1)
      .max(8)
      .optional()
      .describe("Headers that the request must have. Default: none."),
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
        "Counter: one per key, or one per identity (a key without an identity has its own). The same as by with one entry. Default with name: Key. Required with namespace, without by.",
      ),
    by: setOf(CountedBy, COUNTED_BY_MAX)
      .min(1)
      .optional()
      .describe(
        "Counter: one per combination of these values: key, identity, address, host, method, path.NAME (a parameter of the template), header.NAME. A gate counts up to 10,000 combinations per window separately, and up to 1,000 of one client; the others together.",
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
      rule: "!has(self.identifier) || !has(self.by)",
      message: "set only one of `identifier` and `by`",
      holds: ({ identifier, by }) => identifier === undefined || by === undefined,
    },
    {
      rule: "!has(self.namespace) || has(self.identifier) || has(self.by)",
      message: "a limit in a namespace requires `by`, or an `identifier`: Key or Identity",
      holds: ({ namespace, identifier, by }) => namespace === undefined || identifier !== undefined || by !== undefined,
    },
  ],
).describe("Rate limit. A request is charged to all of its limits, or rejected without a charge.");

/**
 * Returns the name of the counter that a limit uses. Two limits of one rule must not share a counter, because a request would charge it
 * twice.
 */
const counterOf = ({
  name,
  namespace,
  identifier = "Key",
  by = [identifier.toLowerCase()],
  duration,
}: z.output<typeof Ratelimit>): string => JSON.stringify([name, namespace, by, findDuration(duration)]);

/**
 * CEL equivalent of `counterOf`. `namespace` is a reserved word in CEL. The counter is a list rather than one long string, because
 * comparing long strings pair by pair would exceed the cost budget of a CEL rule.
 */
const celCounterOf = (limit: string): string =>
  `[${[
    `(has(${limit}.name) ? ${limit}.name : '')`,
    `(has(${limit}.__namespace__) ? ${limit}.__namespace__ : '')`,
    `string(${celMilliseconds(`${limit}.duration`)})`,
  ].join(", ")}]`;

const celCountedBy = (limit: string): string =>
  `(has(${limit}.by) ? ${limit}.by : [has(${limit}.identifier) && ${limit}.identifier == 'Identity' ? 'identity' : 'key'])`;

const Ratelimits = withRules(z.array(Ratelimit).max(16), [
  {
    rule: `self.all(a, self.exists_one(b, ${celCounterOf("a")} == ${celCounterOf("b")} && ${celCountedBy("a")} == ${celCountedBy("b")}))`,
    message: "two limits have the same counter",
    faults: (limits) => repeated(limits, counterOf, "has the same counter as a previous limit"),
  },
]);

/** Returns whether a limit counts by key or identity. A limit without `by` does. */
const countsKeys = ({ by, identifier }: z.output<typeof Ratelimit>): boolean =>
  by === undefined || identifier !== undefined || by.includes("key") || by.includes("identity");

/** One rule of an ApiKeyPolicy. */
export const ManifestRule = withRules(
  z.strictObject({
    name: z
      .string()
      .min(1)
      .max(63)
      .regex(RULE_NAME, { error: "expected lower-case letters, digits and hyphens" })
      .optional()
      .describe(
        "Name of the rule, unique in the policy, for explanations, metrics, the audit log and `RateLimit-Policy`.",
      ),
    match: Match.default({}),
    access: z
      .enum(["Key", "Anonymous", "Deny"])
      .default("Key")
      .describe(
        "Key requires a valid key; Anonymous admits requests without a key; Deny rejects every request with 403.",
      ),
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
      rule: "self.access == 'Key' || (!has(self.permissions) && !has(self.credits))",
      message: "only a rule with access Key can require permissions or credits",
      holds: ({ access, permissions, credits }) =>
        access === "Key" || (permissions === undefined && credits === undefined),
    },
    {
      rule: "self.access != 'Deny' || !has(self.ratelimits) || size(self.ratelimits) == 0",
      message: "a rule with access Deny cannot have rate limits, because it rejects every request",
      holds: ({ access, ratelimits }) => access !== "Deny" || ratelimits.length === 0,
    },
    {
      rule: "self.access != 'Anonymous' || !has(self.ratelimits) || self.ratelimits.all(limit, has(limit.by) && !has(limit.identifier) && !limit.by.exists(by, by == 'key' || by == 'identity'))",
      message: "a limit of an Anonymous rule requires `by` without key and identity, because its requests have no key",
      faults: ({ access, ratelimits }) =>
        access !== "Anonymous"
          ? []
          : ratelimits.flatMap((limit, index) =>
              countsKeys(limit)
                ? [
                    {
                      path: ["ratelimits", index],
                      message:
                        "a limit of an Anonymous rule requires `by` without key and identity, because its requests have no key; count by address, for example",
                    },
                  ]
                : [],
            ),
    },
    {
      rule: "(has(self.match.path) && has(self.match.path.template)) || !has(self.ratelimits) || self.ratelimits.all(limit, !has(limit.by) || !limit.by.exists(by, by.startsWith('path.')))",
      message: "`path.NAME` in `by` requires match.path.template",
      faults: ({ match, ratelimits }) =>
        match.path?.template !== undefined
          ? []
          : ratelimits.flatMap(({ by = [] }, limit) =>
              by.flatMap((value, at) =>
                value.startsWith("path.")
                  ? [{ path: ["ratelimits", limit, "by", at], message: "requires match.path.template" }]
                  : [],
              ),
            ),
    },
  ],
).describe("Requirements for matching requests. The first matching rule applies.");
export type ManifestRule = z.output<typeof ManifestRule>;
