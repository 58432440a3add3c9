import * as z from "zod";
import type { OverrideRow } from "../../db/overrides.ts";

/* Fields that the ratelimits.* procedures share (api-v1.md section 8). */

const NAME_MAX = 512;

export const NamespaceId = z
  .string()
  .max(255)
  .describe("Id of the namespace.")
  .meta({ examples: ["rlns_6yZa8Bc1De3Fg5Hj"] });

export const NamespaceName = z
  .string()
  .max(NAME_MAX)
  .describe("Name of the namespace.")
  .meta({ examples: ["email.outbound"] });

export const OverrideIdentifier = z
  .string()
  .min(1)
  .max(NAME_MAX)
  .describe("Identifier to which the override applies. Each `*` matches any number of characters.")
  .meta({ examples: ["premium_*"] });

/** The namespace and the identifier of an override. */
export const OverrideRef = {
  namespaceId: NamespaceId.optional(),
  namespaceName: NamespaceName.optional(),
  identifier: OverrideIdentifier,
};

export const OverrideId = z
  .string()
  .describe("Id of the override.")
  .meta({ examples: ["rlor_3mNp5Qr7St9Uv2Wx"] });

export const OverrideLimit = z
  .int()
  .min(0)
  .describe("Units per window, which apply instead of those in the call. 0 rejects every request.")
  .meta({ examples: [1000] });

export const Duration = z
  .int()
  .min(1000)
  .describe("Window length in ms.")
  .meta({ examples: [60_000] });

export const OverrideAsync = z
  .boolean()
  .describe("Whether each process counts by itself and syncs in the background, which is faster but less exact.");

export const OverrideResponse = z.object({
  id: OverrideId,
  identifier: OverrideIdentifier,
  limit: OverrideLimit,
  duration: Duration,
  async: OverrideAsync,
});
export type OverrideResponse = z.output<typeof OverrideResponse>;

export const toOverrideResponse = (row: OverrideRow): OverrideResponse => ({
  id: row.id,
  identifier: row.identifier,
  limit: row.max_count,
  duration: row.duration_ms,
  async: row.async,
});
