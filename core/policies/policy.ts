import * as z from "zod";
import { whenMissing } from "../tolerant.ts";

/*
 * The compiled policy: `managed.applyObject` compiles it from an ApiKeyPolicy manifest and stores it, and sidecars enforce it.
 * Names are resolved to ids, durations are in milliseconds, and defaults are filled in. Limits are the same as in the manifest schema, so
 * that an accepted manifest always compiles.
 *
 *   PolicyInput      strict: what a manifest compiles to. In this file.
 *   StoredPolicy     tolerant: what is stored and projected, maybe by another version. stored-policy.ts
 *   CompiledPolicy   the complete value that code works with.
 *
 * A new member is optional in the input, and its default keeps the earlier behavior. If an older sidecar, which ignores the member, would
 * admit more than the policy allows, a policy with this member must have a higher `formatVersion`.
 */

/** Highest format that this version reads and writes. `formatOf` lists what format 2 added. */
export const POLICY_FORMAT_VERSION = 2;

export const HTTP_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"] as const;
export const HttpMethod = z.enum(HTTP_METHODS);

const HeaderName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/)
  .describe("Name of the header.");

/**
 * Location of a key: a header (with or without an authentication scheme before the key), or a query parameter. The default locations
 * include no query parameter.
 */
export const CredentialLocation = z.discriminatedUnion("in", [
  z.strictObject({
    in: z.literal("header").describe("The key is in a header."),
    name: HeaderName,
    scheme: z.string().min(1).max(32).optional().describe("The authentication scheme before the key."),
  }),
  z.strictObject({
    in: z.literal("query").describe("The key is in a query parameter."),
    name: z.string().min(1).max(128).describe("Name of the parameter."),
  }),
]);
export type CredentialLocation = z.infer<typeof CredentialLocation>;

/**
 * `prefix` matches complete segments; `exact` matches byte for byte; in `template`, `{name}` matches one segment, and `{name...}` as the
 * last segment matches the rest. At most one is set; if none is set, every path matches.
 */
export const PathMatch = z.union([
  z.strictObject({
    prefix: z.string().min(1).max(1024).regex(/^\//).describe("Path prefix of complete segments."),
  }),
  z.strictObject({
    exact: z.string().min(1).max(1024).regex(/^\//).describe("Complete path, compared byte for byte."),
  }),
  z.strictObject({
    template: z.string().min(1).max(256).regex(/^\//).describe("Path whose segments may be parameters: {name}."),
  }),
]);
export type PathMatch = z.infer<typeof PathMatch>;

/** Values of a request that a limit can count by. `countedValueOf` in counted-value.ts parses them. */
export const CountedBy = z
  .string()
  .min(1)
  .max(72)
  .regex(/^(key|identity|address|host|method|path\.[A-Za-z_][A-Za-z0-9_]*|header\.[A-Za-z0-9!#$%&'*+.^_`|~-]+)$/)
  .describe("`key`, `identity`, `address`, `host`, `method`, `path.NAME` or `header.NAME`.");
export const COUNTED_BY_MAX = 4;

/**
 * A limit of the rule itself (`name`, counted per key or identity), or a limit in a shared namespace. Only a namespace can have overrides.
 */
export const RuleRatelimit = z.strictObject({
  scope: z
    .discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("name").describe("Limit of the rule itself."),
        name: z.string().min(1).max(255).describe("Name of the limit."),
      }),
      z.strictObject({
        kind: z.literal("namespace").describe("Limit in a namespace. A namespace may have overrides."),
        namespaceId: z.string().min(1).max(255).describe("Id of the namespace."),
      }),
    ])
    .describe("Counter of the limit."),
  identifier: z
    .enum(["key", "identity"])
    .optional()
    .describe("Whether requests are counted per key or per identity. Required without `by`."),
  by: z
    .array(CountedBy)
    .min(1)
    .max(COUNTED_BY_MAX)
    .optional()
    .describe("Values by whose combination requests are counted, instead of `identifier`."),
  limit: z.int().min(0).describe("Units per window."),
  durationMs: z.int().min(1000).describe("Length of the window, ms."),
  cost: whenMissing(z.int().min(0).describe("Units per request."), 1),
  accuracy: whenMissing(
    z.enum(["strict", "local"]).describe("`strict` counts in the shared store, `local` in the pod."),
    "strict",
  ),
});
export type RuleRatelimit = z.infer<typeof RuleRatelimit>;

/** A header that a request must have. `exact` compares its value; without it, any value matches. */
const HeaderMatch = z.strictObject({
  name: HeaderName,
  exact: z.string().max(1024).optional().describe("Value of the header. Default: any value."),
});

/** Names of rules. Gates send these names in `RateLimit-Policy`, so quotation marks and control characters are not allowed. */
export const RULE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

export const PolicyRule = z.strictObject({
  name: z.string().min(1).max(63).regex(RULE_NAME).optional().describe("Name of the rule, unique in the policy."),
  methods: z.array(HttpMethod).max(HTTP_METHODS.length).optional().describe("HTTP methods. Default: every method."),
  path: PathMatch.optional().describe("Paths. Default: every path."),
  hosts: z
    .array(z.string().min(1).max(253))
    .min(1)
    .max(16)
    .optional()
    .describe("Host names, such as `api.example.com` or `*.example.com`. Default: every host."),
  headers: z.array(HeaderMatch).min(1).max(8).optional().describe("Headers that the request must have. Default: none."),
  access: whenMissing(
    z
      .enum(["Key", "Anonymous", "Deny"])
      .describe("`Key` requires a valid key, `Anonymous` admits requests without one, `Deny` rejects every request."),
    "Key",
  ),
  permissions: z.string().min(1).max(1000).optional().describe("Permission query, as in keys.verifyKey."),
  creditCost: whenMissing(
    z.int().min(0).max(1_000_000_000_000).describe("Credits per request; the default of keys.verifyKey is 1."),
    1,
  ),
  ratelimits: z
    .array(RuleRatelimit)
    .max(16)
    .describe("Limits that a request is charged to: either all of them or none."),
});
export type PolicyRule = z.infer<typeof PolicyRule>;

/** Forms of paths that get 400 unless a policy lists them, because the app could serve another path than the one that was matched. */
export const PathAllowance = z.enum([
  "EncodedSlash",
  "Backslash",
  "DoubleSlash",
  "Semicolon",
  "DotSegments",
  "ControlCharacters",
  "InvalidUtf8",
  "NearMatch",
  "Suffix",
]);
export type PathAllowance = z.infer<typeof PathAllowance>;

const Ipv6PrefixBits = z
  .int()
  .min(32)
  .max(128)
  .describe("Leading bits of an IPv6 address that identify one client in limits by address. Default: 64.");

export const PolicyInput = z
  .strictObject({
    formatVersion: z
      .int()
      .min(1)
      .max(POLICY_FORMAT_VERSION)
      .describe(
        "The format that a sidecar must know to enforce the policy; a sidecar that does not know it keeps the last policy.",
      ),
    apiId: z.string().min(1).max(255).describe("Id of the API whose keys are accepted."),
    mode: whenMissing(
      z.enum(["Enforce", "Audit"]).describe("`Audit` records decisions but admits every request."),
      "Enforce",
    ),
    credentials: z
      .array(CredentialLocation)
      .min(1)
      .max(8)
      .describe("Locations where the gate looks for the key, in this order."),
    rules: z
      .array(PolicyRule)
      .max(256)
      .describe("The first matching rule decides; without a match, `defaultAccess` does."),
    defaultAccess: z
      .enum(["Key", "Anonymous", "Deny"])
      .optional()
      .describe("Access for requests that match no rule. Default: `Key`."),
    failedAttempts: z
      .strictObject({
        limit: z.int().min(1).max(1_000_000).describe("Maximum failed attempts per client address and window."),
        durationMs: z.int().min(1000).describe("Length of the window, ms."),
      })
      .optional()
      .describe("Limit on requests that end with 401, per client address."),
    onStale: whenMissing(
      z
        .strictObject({
          afterMs: whenMissing(z.int().min(1000).describe("Age beyond which data is stale."), 30_000),
          action: whenMissing(
            z.enum(["Serve", "Deny"]).describe("Whether gates serve or deny requests on stale data."),
            "Serve",
          ),
          denyAfterMs: whenMissing(
            z.int().min(1000).describe("Age of the data beyond which gates deny every request."),
            900_000,
          ),
        })
        .describe("Behavior of gates while no changes arrive."),
      { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
    ),
    onCounterFailure: whenMissing(
      z
        .enum(["Local", "LocalShare", "Deny", "Allow"])
        .describe(
          "What happens while the shared counters are unreachable: Local counts in each pod, LocalShare too and with the limit divided by the pods.",
        ),
      "Local",
    ),
    onCreditFailure: whenMissing(
      z
        .enum(["Deny", "Allow"])
        .describe("Decision for keys with limited credits while the credit counter is unavailable."),
      "Deny",
    ),
    clientAddress: z
      .discriminatedUnion("from", [
        z.strictObject({
          from: z.literal("connection").describe("Address of the connection."),
          ipv6PrefixBits: Ipv6PrefixBits.optional(),
        }),
        z.strictObject({
          from: z.literal("forwardedFor").describe("The last entry of `X-Forwarded-For` that is not a trusted proxy."),
          trustedProxies: z.array(z.string().min(1).max(64)).max(64).describe("Addresses or ranges of the proxies."),
          ipv6PrefixBits: Ipv6PrefixBits.optional(),
        }),
      ])
      .optional()
      .describe("Source of the client's address. Without it, the IP allow-list of the API is not checked."),
    allowPaths: whenMissing(
      z
        .array(PathAllowance)
        .max(PathAllowance.options.length)
        .describe("Unusual path forms that gates admit instead of rejecting them with 400."),
      [],
    ),
  })
  .describe("A compiled ApiKeyPolicy: names are resolved, and defaults are filled in.")
  .meta({
    examples: [
      {
        formatVersion: 1,
        apiId: "api_9xKp3Rt6VwY1zAbC",
        mode: "Enforce",
        credentials: [{ in: "header", name: "Authorization", scheme: "Bearer" }],
        rules: [
          {
            methods: ["POST"],
            path: { prefix: "/orders" },
            access: "Key",
            permissions: "orders.write",
            creditCost: 1,
            ratelimits: [
              {
                scope: { kind: "name", name: "writes" },
                identifier: "key",
                limit: 100,
                durationMs: 60_000,
                cost: 1,
                accuracy: "strict",
              },
            ],
          },
        ],
        onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
        onCounterFailure: "Local",
        onCreditFailure: "Deny",
        allowPaths: [],
      },
    ],
  });
export type PolicyInput = z.input<typeof PolicyInput>;
export type CompiledPolicy = z.output<typeof PolicyInput>;
