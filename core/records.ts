import * as z from "zod";

/*
 * The data that a verification needs of each entity, in the form in which it is projected to gates. A change of an entity rewrites only its
 * own record: a key refers to its roles, identity, API and workspace by id, so that editing the role of a million keys writes one record.
 *
 * Different versions write different members. Readers ignore unknown members, and fill in missing members that have a default. A member
 * without a default is required, because its absence would weaken a restriction. If a record has a member that readers must not ignore,
 * such as a restriction of a key, its `formatVersion` is above that of older readers, which then treat the record as unusable. A record
 * without a `formatVersion` is of version 1.
 */

/** Highest format that this version writes and reads, for each record below. */
export const RECORD_FORMAT_VERSION = 1;

export const RatelimitRecord = z.object({
  id: z.string(),
  name: z.string(),
  limit: z.number(),
  durationMs: z.number(),
  autoApply: z.boolean(),
});
export type RatelimitRecord = z.infer<typeof RatelimitRecord>;

const Meta = z.record(z.string(), z.unknown());

export const KeyRecord = z.object({
  keyId: z.string(),
  workspaceId: z.string(),
  apiId: z.string(),
  keySpaceId: z.string(),
  enabled: z.boolean(),
  name: z.string().optional(),
  meta: Meta.optional(),
  /** Owner and environment that a call of API v1 set for the key. Like `meta`, they do not affect decisions and are not sent to gates. */
  ownerId: z.string().optional(),
  environment: z.string().optional(),
  /** Expiry, Unix ms. The key is still valid in that millisecond. */
  expiresMs: z.number().optional(),
  identityId: z.string().optional(),
  roleIds: z.array(z.string()).default([]),
  /** Slugs of the direct permissions. */
  permissions: z.array(z.string()).default([]),
  ratelimits: z.array(RatelimitRecord),
  /** Whether the key has a credit limit; only the credit counter stores the number of credits. */
  limited: z.boolean(),
});
export type KeyRecord = z.infer<typeof KeyRecord>;

export const IdentityRecord = z.object({
  id: z.string(),
  externalId: z.string(),
  meta: Meta.optional(),
  ratelimits: z.array(RatelimitRecord),
});
export type IdentityRecord = z.infer<typeof IdentityRecord>;

export const RoleRecord = z.object({
  id: z.string(),
  name: z.string(),
  permissions: z.array(z.string()).default([]),
});
export type RoleRecord = z.infer<typeof RoleRecord>;

/** API record. `ipAllowList` is omitted if the API has none. A deleted API has a tombstone instead of a record. */
export const ApiRecord = z.object({ id: z.string(), name: z.string(), ipAllowList: z.array(z.string()).optional() });
export type ApiRecord = z.infer<typeof ApiRecord>;

export const WorkspaceRecord = z.object({ id: z.string(), enabled: z.boolean() });
export type WorkspaceRecord = z.infer<typeof WorkspaceRecord>;

/** Namespace record. `deleted` is set for a soft-deleted namespace: limit calls return 410 instead of creating a new namespace. */
export const NamespaceRecord = z.object({ id: z.string(), name: z.string(), deleted: z.boolean().default(false) });
export type NamespaceRecord = z.infer<typeof NamespaceRecord>;

export const OverrideRecord = z.object({
  id: z.string(),
  identifier: z.string(),
  limit: z.number(),
  durationMs: z.number(),
  /** Whether the limit is counted in the gate and synced in the background, instead of strictly in the shared store. */
  async: z.boolean().default(false),
});
export type OverrideRecord = z.infer<typeof OverrideRecord>;

/** All overrides of a namespace whose identifier contains a `*`. */
export const OverridePatternsRecord = z.object({ patterns: z.array(OverrideRecord) });
export type OverridePatternsRecord = z.infer<typeof OverridePatternsRecord>;
