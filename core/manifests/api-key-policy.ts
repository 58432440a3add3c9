import * as z from "zod";
import { PathAllowance } from "../policies/policy.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import {
  AllowedNamespaces,
  deletionPolicy,
  exactlyOneOf,
  HeaderName,
  LabelsToMatch,
  nameOf,
  repeated,
  setOf,
  statusFields,
  storeId,
  withRules,
} from "./fields.ts";
import { ManifestRule } from "./policy-rule.ts";
import { PATHS_THAT_MATCH } from "./rule-path.ts";
import { TrustedProxy } from "./trusted-proxy.ts";

const Selector = z
  .strictObject({
    matchLabels: LabelsToMatch.describe("Labels that a pod must have; all must match."),
  })
  .describe("Pods that get a gate. Default: no pod; you run the gate yourself.");

const Api = withRules(
  z.strictObject({
    name: nameOf({ min: 3, max: 256 })
      .optional()
      .describe("Name of the API that is created for the policy. A change renames the API and keeps its keys."),
    id: z
      .string()
      .min(8)
      .max(255)
      .regex(/^[a-zA-Z0-9_]+$/)
      .optional()
      .describe("Id of an existing API. Immutable."),
  }),
  [
    exactlyOneOf("name", "id"),
    {
      rule: "has(self.id) == has(oldSelf.id) && (!has(self.id) || self.id == oldSelf.id)",
      message: "a policy cannot move to another API; create another policy",
    },
  ],
).describe("API whose keys the app accepts.");

const Credential = withRules(
  z.strictObject({
    header: z
      .strictObject({
        name: HeaderName.describe("Name of the header, case-insensitive."),
        scheme: z.string().min(1).max(32).optional().describe("Authentication scheme before the key, such as Bearer."),
      })
      .optional()
      .describe("Header that contains the key."),
    query: z
      .strictObject({ name: z.string().min(1).max(128).describe("Name of the parameter.") })
      .optional()
      .describe(
        "Query parameter that contains the key. Prefer a header, because logs and browser histories store URLs.",
      ),
  }),
  [exactlyOneOf("header", "query")],
).describe("Location of the key in a request.");

/** Returns the text in lower case, to compare header and scheme names. Changes only ASCII letters, as CEL does. */
const lowerAscii = (text: string): string => text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());

function placeOf({ header, query }: z.output<typeof Credential>): string {
  if (header === undefined) return JSON.stringify(["query", query?.name]);
  return JSON.stringify(["header", lowerAscii(header.name), lowerAscii(header.scheme ?? "")]);
}

/** Returns a CEL expression for the location of a credential; equal locations give equal values. */
const celLocationOf = (credential: string): string => {
  const header = `${credential}.header`;
  return `[${[
    `(has(${header}) ? ${header}.name.lowerAscii() : '')`,
    `(has(${header}) && has(${header}.scheme) ? ${header}.scheme.lowerAscii() : '')`,
    `(has(${credential}.query) ? ${credential}.query.name : '')`,
  ].join(", ")}]`;
};

const Credentials = withRules(z.array(Credential).min(1).max(8), [
  {
    rule: `self.all(a, self.exists_one(b, ${celLocationOf("a")} == ${celLocationOf("b")}))`,
    message: "two locations are the same",
    faults: (credentials) => repeated(credentials, placeOf, "is the same location as a previous one"),
  },
]);

const DEFAULT_CREDENTIALS = [
  { header: { name: "Authorization", scheme: "Bearer" } },
  { header: { name: "X-API-Key" } },
];

const OnStale = withRules(
  z.strictObject({
    after: durationOf({ msMin: 1000 }).default("30s").describe("Age of the gate's data at which `action` applies."),
    action: z
      .enum(["Serve", "Deny"])
      .default("Serve")
      .describe(
        "Serve continues to accept cached keys and reports stale data in metrics and status; Deny rejects all keys.",
      ),
    denyAfter: durationOf({ msMin: 1000 })
      .default("15m")
      .describe("Age of the gate's data at which Serve also rejects all keys."),
  }),
  [
    {
      rule: `${celMilliseconds("self.denyAfter")} >= ${celMilliseconds("self.after")}`,
      message: "`denyAfter` must not be shorter than `after`",
      faults: ({ after, denyAfter }) => {
        const [afterMs, denyAfterMs] = [findDuration(after), findDuration(denyAfter)];
        const isShorter = afterMs !== undefined && denyAfterMs !== undefined && denyAfterMs < afterMs;
        return isShorter ? [{ path: ["denyAfter"], message: "must not be shorter than spec.onStale.after" }] : [];
      },
    },
  ],
).describe("Behavior while key changes do not reach the gate.");

const COUNTER_FAILURES = ["Local", "Deny", "Allow"] as const;
const EXPECTED_COUNTER_FAILURE =
  "expected Local, Deny or Allow, or an object such as { action: Local, budget: PerPod }; only Local has a budget";

/**
 * The value is an action name, or an object that contains the action. A Kubernetes schema cannot allow two types for one field, so the CRD
 * schema omits the type and lists all allowed values.
 */
const OnCounterFailure = z
  .union(
    [
      z.enum(COUNTER_FAILURES),
      z.strictObject({ action: z.enum(COUNTER_FAILURES) }),
      z.strictObject({ action: z.literal("Local"), budget: z.literal("PerPod") }),
    ],
    { error: EXPECTED_COUNTER_FAILURE },
  )
  .meta({
    "x-kubernetes-preserve-unknown-fields": true,
    enum: [
      ...COUNTER_FAILURES,
      ...COUNTER_FAILURES.map((action) => ({ action })),
      { action: "Local", budget: "PerPod" },
    ],
  });

const ClientAddress = withRules(
  z.strictObject({
    from: z
      .enum(["Connection", "ForwardedFor"])
      .describe(
        "Connection uses the peer address; ForwardedFor uses the last entry of X-Forwarded-For that is not a trusted proxy.",
      ),
    trustedProxies: z
      .array(TrustedProxy)
      .max(64)
      .optional()
      .describe("Addresses or CIDR blocks of trusted proxies, for ForwardedFor."),
    ipv6PrefixBits: z
      .int()
      .min(32)
      .max(128)
      .default(64)
      .describe(
        "Leading bits of an IPv6 address that identify one client, because a client usually has a whole network.",
      ),
  }),
  [
    {
      rule: "(self.from == 'ForwardedFor') == has(self.trustedProxies)",
      message: "trustedProxies is required with ForwardedFor, and is not allowed otherwise",
      holds: ({ from, trustedProxies }) => (from === "ForwardedFor") === (trustedProxies !== undefined),
    },
  ],
).describe(
  "Source of the client address. Without it, the gate does not check the IP allow-list of the API, and limits cannot count by address.",
);

const FailedAttempts = z
  .strictObject({
    limit: z.int().min(1).max(1_000_000).describe("Maximum failed attempts per client address and window."),
    duration: durationOf({ msMin: 1000 }).describe("Length of the window."),
  })
  .describe(
    "Limit of requests that end with 401, per client address over all pods. Above it, the address gets 429 before its key is looked up, except for keys that succeeded from it within the last hour.",
  );

const EXPECTED_PORT = "expected a port: a number from 1 to 65535, or the name of a container port";
/** Port name: groups of lower-case letters and digits, separated by hyphens, with at least one letter, like Kubernetes port names. */
const PORT_NAME = /^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

const ADDRESS_REQUIRED = "requires spec.clientAddress, which says where the address comes from";

/** Returns each location in a spec that requires the client address. */
function addressUses({ failedAttempts, rules }: { failedAttempts: unknown; rules: readonly ManifestRule[] }) {
  const limits = rules.flatMap(({ ratelimits }, rule) =>
    ratelimits.flatMap(({ by = [] }, limit) =>
      by.includes("address")
        ? [{ path: ["rules", rule, "ratelimits", limit, "by", by.indexOf("address")], message: ADDRESS_REQUIRED }]
        : [],
    ),
  );
  return failedAttempts === undefined ? limits : [{ path: ["failedAttempts"], message: ADDRESS_REQUIRED }, ...limits];
}

const repeatedNames = (rules: readonly ManifestRule[]) =>
  repeated(rules, ({ name }, index) => name ?? `${index} `, "has the same name as a previous rule").map(
    ({ path, message }) => ({ path: ["rules", ...path, "name"], message }),
  );

/** Defines which keys an app accepts, and what each request requires. */
export const ApiKeyPolicySpec = withRules(
  z.strictObject({
    selector: Selector.optional(),
    api: Api,
    target: z
      .strictObject({
        port: z
          .union([z.string().min(1).max(15, { abort: true }), z.int().min(1).max(65_535)], { error: EXPECTED_PORT })
          .refine((port) => typeof port === "number" || PORT_NAME.test(port), { error: EXPECTED_PORT })
          .meta({
            "x-kubernetes-int-or-string": true,
            minimum: 1,
            maximum: 65_535,
            maxLength: 15,
            pattern: PORT_NAME.source,
          })
          .describe("Container port of the app, by name or number."),
        protocol: z
          .enum(["http1", "h2c"], { error: "expected http1 or h2c" })
          .default("http1")
          .describe("Protocol of the app: HTTP/1.1, or HTTP/2 without TLS for all requests, as gRPC requires."),
      })
      .describe("App that the gate protects."),
    interception: z
      .enum(["Port", "Redirect", "None"])
      .default("Port")
      .describe(
        "Port: the gate takes over the name of the container port. Redirect: iptables redirects traffic for the port to the gate. None: traffic is not intercepted.",
      ),
    credentials: Credentials.default(DEFAULT_CREDENTIALS).describe(
      "Locations of the key, in order of precedence. The first one in the request is used; all are removed before the app receives the request.",
    ),
    rules: z
      .array(ManifestRule)
      .max(256)
      .default([])
      .describe("Rules for requests; the first match applies. Without a match, defaultAccess applies."),
    defaultAccess: z
      .enum(["Key", "Anonymous", "Deny"])
      .default("Key")
      .describe("Access for requests that match no rule; takes the same values as in a rule."),
    failedAttempts: FailedAttempts.optional(),
    mode: z
      .enum(["Enforce", "Audit"])
      .default("Enforce")
      .describe("Enforce rejects requests; Audit only records the decisions and admits every request."),
    onStale: OnStale.default({ after: "30s", action: "Serve", denyAfter: "15m" }),
    onCounterFailure: OnCounterFailure.default("Local").describe(
      "Rate limits while Redis is unavailable. Local: each pod counts from zero, so a window may admit (pods + 1) × limit. Deny: rejects. Allow: does not limit. { action: Local, budget: PerPod }: each pod gets limit / pods, rounded down and at least 1, so a window admits at most 2 × limit or limit + pods, whichever is larger; a gate of an older version rejects this form and keeps the previous policy.",
    ),
    onCreditFailure: z
      .enum(["Deny", "Allow"])
      .default("Deny")
      .describe("Decision for keys with limited credits while the credits are unavailable."),
    clientAddress: ClientAddress.optional(),
    allowPaths: setOf(PathAllowance, PathAllowance.options.length)
      .default([])
      .describe(
        "Ambiguous path forms to accept; the others get 400, because servers interpret them differently. Semicolon, ControlCharacters and InvalidUtf8 are accepted if no rule depends on the path. NearMatch: the path differs from the path of a rule with other requirements only in letter case, a leading or trailing slash, space or dot, or double encoding. Suffix: the path of such a rule followed by a format such as .json.",
      ),
    networkPolicy: z
      .enum(["Managed", "None"])
      .default("Managed")
      .describe(
        "Managed: with interception Port, a NetworkPolicy blocks direct traffic to the port of the app in pods with a gate. None: no NetworkPolicy is created.",
      ),
    allowedNamespaces: AllowedNamespaces,
    adopt: z
      .enum(["Match", "Override"])
      .optional()
      .describe(
        "With api.id, lets the policy manage an unmanaged API; both values have the same effect. Not required for an API that this policy created and released.",
      ),
    deletionPolicy: deletionPolicy("Orphan", "the API that the policy created or adopted"),
  }),
  [
    ...PATHS_THAT_MATCH,
    {
      rule: "self.rules.all(a, !has(a.name) || self.rules.exists_one(b, has(b.name) && b.name == a.name))",
      message: "two rules have the same name",
      fieldPath: ".rules",
      faults: ({ rules }) => repeatedNames(rules),
    },
    {
      rule: "has(self.clientAddress) || (!has(self.failedAttempts) && self.rules.all(rule, !has(rule.ratelimits) || rule.ratelimits.all(limit, !has(limit.by) || !limit.by.exists(by, by == 'address'))))",
      message: "failedAttempts and limits by address require clientAddress, which says where the address comes from",
      faults: ({ clientAddress, failedAttempts, rules }) =>
        clientAddress !== undefined ? [] : addressUses({ failedAttempts, rules }),
    },
    {
      rule: "!has(self.adopt) || has(self.api.id)",
      message: "adopt requires api.id",
      holds: ({ adopt, api }) => adopt === undefined || api.id !== undefined,
    },
  ],
).describe("Which API keys an app accepts, and what each request requires.");
export type ApiKeyPolicySpec = z.output<typeof ApiKeyPolicySpec>;

export const ApiKeyPolicyStatus = z.object({
  ...statusFields,
  workspaceId: storeId("the workspace"),
  apiId: storeId("the API"),
  policyId: storeId("the compiled policy"),
  policyVersion: z.int().min(0).optional().describe("Version of the stored compiled policy."),
  dataPlane: z
    .object({
      pods: z.int().min(0).describe("Gates that reported in the last 15 s."),
      updated: z.int().min(0).describe("Gates that enforce this generation."),
      unguarded: z
        .int()
        .min(0)
        .optional()
        .describe("Running pods of spec.selector without a gate of this policy; an Event names them."),
      silent: z
        .int()
        .min(1)
        .optional()
        .describe("Running pods whose gate does not report; the message of Enforced names up to five."),
      maxStalenessMs: z
        .int()
        .min(0)
        .optional()
        .describe("Maximum staleness of the gates, in milliseconds, in steps of 5,000."),
      unsupported: z
        .int()
        .min(0)
        .optional()
        .describe("Gates of an older version that cannot enforce this generation and keep the previous one."),
      overAdmittedUnits: z
        .int()
        .min(0)
        .optional()
        .describe(
          "Units that running gates admitted beyond limits while Redis was unavailable, except for limits with `async: true`.",
        ),
      overAdmittedPercent: z
        .int()
        .min(0)
        .optional()
        .describe("Largest excess over a limit while Redis was unavailable, as a percentage of the limit."),
    })
    .optional()
    .describe("Summary of the gates' reports."),
});
export type ApiKeyPolicyStatus = z.output<typeof ApiKeyPolicyStatus>;
