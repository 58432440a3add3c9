import * as z from "zod";

/*
 * The compiled policy: what the operator makes of an ApiKeyPolicy manifest, what `policies.setPolicy` stores and what a
 * sidecar enforces. Names are resolved to ids, durations are milliseconds, defaults are filled in. Bounds are the same
 * as in the manifest schema, so that an accepted manifest always compiles.
 */

export const HTTP_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"] as const;
export const HttpMethod = z.enum(HTTP_METHODS);

const HeaderName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/);

/** A header (with an authentication scheme before the key, or none), or by opt-in a query parameter. */
export const CredentialLocation = z.discriminatedUnion("in", [
  z.strictObject({ in: z.literal("header"), name: HeaderName, scheme: z.string().min(1).max(32).optional() }),
  z.strictObject({ in: z.literal("query"), name: z.string().min(1).max(128) }),
]);
export type CredentialLocation = z.infer<typeof CredentialLocation>;

/** Whole segments for `prefix`; `exact` is byte for byte. At most one of the two; neither matches every path. */
export const PathMatch = z.union([
  z.strictObject({ prefix: z.string().min(1).max(1024).regex(/^\//) }),
  z.strictObject({ exact: z.string().min(1).max(1024).regex(/^\//) }),
]);
export type PathMatch = z.infer<typeof PathMatch>;

/** A limit of the rule itself (`name`, counted per key or identity) or of a shared, overridable namespace. */
export const RuleRatelimit = z.strictObject({
  scope: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("name"), name: z.string().min(1).max(255) }),
    z.strictObject({ kind: z.literal("namespace"), namespaceId: z.string().min(1).max(255) }),
  ]),
  identifier: z.enum(["key", "identity"]),
  limit: z.int().min(0),
  durationMs: z.int().min(1000),
  cost: z.int().min(0),
  accuracy: z.enum(["strict", "local"]),
});
export type RuleRatelimit = z.infer<typeof RuleRatelimit>;

export const PolicyRule = z.strictObject({
  methods: z.array(HttpMethod).max(HTTP_METHODS.length).optional(),
  path: PathMatch.optional(),
  access: z.enum(["Key", "Anonymous"]),
  /** The permission query of keys.verifyKey. */
  permissions: z.string().min(1).max(1000).optional(),
  /** Credits per request; the default of keys.verifyKey is 1. */
  creditCost: z.int().min(0).max(1_000_000_000_000),
  ratelimits: z.array(RuleRatelimit).max(16),
});
export type PolicyRule = z.infer<typeof PolicyRule>;

/** Path features that are refused with 400 unless listed here (design: what was matched is what is forwarded). */
export const PathAllowance = z.enum(["EncodedSlash", "Backslash", "DoubleSlash", "Semicolon", "DotSegments"]);
export type PathAllowance = z.infer<typeof PathAllowance>;

export const CompiledPolicy = z.strictObject({
  formatVersion: z.literal(1),
  apiId: z.string().min(1).max(255),
  mode: z.enum(["Enforce", "Audit"]),
  credentials: z.array(CredentialLocation).min(1).max(8),
  rules: z.array(PolicyRule).max(256),
  onStale: z.strictObject({
    afterMs: z.int().min(1000),
    action: z.enum(["Serve", "Deny"]),
    denyAfterMs: z.int().min(1000),
  }),
  onCounterFailure: z.enum(["Local", "Deny", "Allow"]),
  /** What a limited key gets while its credit counter cannot be read. */
  onCreditFailure: z.enum(["Deny", "Allow"]),
  /** How the client's address is found; without it the IP allow-list of the API does not count. */
  clientAddress: z
    .discriminatedUnion("from", [
      z.strictObject({ from: z.literal("connection") }),
      z.strictObject({ from: z.literal("forwardedFor"), trustedProxies: z.array(z.string().min(1).max(64)).max(64) }),
    ])
    .optional(),
  allowPaths: z.array(PathAllowance).max(5),
});
export type CompiledPolicy = z.infer<typeof CompiledPolicy>;

/** The record under which a policy is projected to the pods. */
export const PolicyRecord = z.object({
  policyId: z.string(),
  name: z.string(),
  apiId: z.string(),
  uid: z.string(),
  generation: z.number(),
  /** Grows with every change of the stored policy, over all uids. */
  version: z.number(),
  policy: CompiledPolicy,
});
export type PolicyRecord = z.infer<typeof PolicyRecord>;
