import * as z from "zod";
import { ApiKeySpec } from "../../core/manifests/api-key.ts";
import { durationOf } from "../../core/manifests/duration.ts";
import { RoleSpec } from "../../core/manifests/role.ts";

/*
 * Schema of the fixtures of `postern simulate`: keys and owners that manifests do not define. The limits are the same as in manifests and
 * the API.
 */

const RESOURCES_MAX = 1_000;

const Name = z.string().min(1).max(253).describe("Name for references in cases.");

const PolicyName = z
  .string()
  .min(1)
  .max(507)
  .describe("ApiKeyPolicy, NAME or NAMESPACE/NAME; optional if there is only one.");

const Ratelimit = z.strictObject({
  name: z.string().min(3).max(255).describe("Name of the limit."),
  limit: z.int().min(0).describe("Units per window."),
  duration: durationOf({ msMin: 1000 }).describe("Length of the window, such as 60s."),
  autoApply: z
    .boolean()
    .default(true)
    .describe("Whether every request is charged, even if it does not name the limit."),
});

const { permissions, roles } = ApiKeySpec.shape;

const Instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

export const Fixtures = z.strictObject({
  now: Instant.optional().describe("Start time of each case; default: the current time."),
  roles: z
    .array(RoleSpec.pick({ name: true, permissions: true }))
    .max(RESOURCES_MAX)
    .default([])
    .describe("Roles that the manifests do not define."),
  identities: z
    .array(
      z.strictObject({
        externalId: z.string().min(1).max(255).describe("External id of the owner in your system."),
        ratelimits: z.array(Ratelimit).max(50).default([]).describe("Limits that all keys of the owner share."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("Owners with limits; owners without limits may be omitted."),
  apis: z
    .array(
      z.strictObject({
        policy: PolicyName.optional(),
        ipAllowList: z.array(z.string().min(2).max(64)).max(1_000).default([]).describe("Addresses and CIDR ranges."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("Settings of the policies' APIs."),
  keys: z
    .array(
      z.strictObject({
        name: Name,
        policy: PolicyName.optional(),
        owner: z.string().min(1).max(255).optional().describe("External id of the owner."),
        roles,
        permissions,
        ratelimits: z.array(Ratelimit).max(50).default([]).describe("Limits of the key."),
        credits: z.int().min(0).optional().describe("Remaining credits; unlimited if omitted."),
        enabled: z.boolean().default(true).describe("Whether the key is enabled."),
        expires: Instant.optional().describe("Expiry of the key."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("Keys, in addition to the keys of ApiKey manifests, which are named like their manifests."),
});
export type Fixtures = z.output<typeof Fixtures>;
