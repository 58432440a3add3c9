import * as z from "zod";

/*
 * What verification needs to know of each entity, in the shape in which it is projected to the pods. A change of an
 * entity rewrites its own record only: a key names its roles, identity, API and workspace by id, so that editing the
 * role of a million keys writes one record.
 *
 * Releases differ in what they write. Readers ignore members that they do not know, and fill in those that are missing and have
 * a default; one without a default must be there, because its absence would let more through. A record that may not be read
 * by a reader that overlooks a member (a restriction of a key) has a `formatVersion` above that of older readers: for them it
 * is not usable, never valid. A record that does not say is of version 1.
 */

/** The highest that this release writes and reads, of each record below. */
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
  /** The owner and the environment as v1 was given them. Like `meta`, no decision needs them, and pods are not sent them. */
  ownerId: z.string().optional(),
  environment: z.string().optional(),
  /** Unix milliseconds. The key still lives in the very millisecond of its expiry. */
  expiresMs: z.number().optional(),
  identityId: z.string().optional(),
  roleIds: z.array(z.string()).default([]),
  /** Slugs of the direct permissions. */
  permissions: z.array(z.string()).default([]),
  ratelimits: z.array(RatelimitRecord),
  /** True when the key has credits; how many is known to the credit counter alone. */
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

/** `ipAllowList` is left out when the API has none. A deleted API has a tombstone, not a record. */
export const ApiRecord = z.object({ id: z.string(), name: z.string(), ipAllowList: z.array(z.string()).optional() });
export type ApiRecord = z.infer<typeof ApiRecord>;

export const WorkspaceRecord = z.object({ id: z.string(), enabled: z.boolean() });
export type WorkspaceRecord = z.infer<typeof WorkspaceRecord>;

/** `deleted` marks a namespace that was soft-deleted: limit calls answer 410 instead of making a new one. */
export const NamespaceRecord = z.object({ id: z.string(), name: z.string(), deleted: z.boolean().default(false) });
export type NamespaceRecord = z.infer<typeof NamespaceRecord>;

export const OverrideRecord = z.object({
  id: z.string(),
  identifier: z.string(),
  limit: z.number(),
  durationMs: z.number(),
  /** Counted in the pod and synced in the background, instead of strictly in the shared store. */
  async: z.boolean().default(false),
});
export type OverrideRecord = z.infer<typeof OverrideRecord>;

/** All overrides of a namespace whose identifier contains `*`. */
export const OverridePatternsRecord = z.object({ patterns: z.array(OverrideRecord) });
export type OverridePatternsRecord = z.infer<typeof OverridePatternsRecord>;
