import * as z from "zod";
import { ApiKeySpec } from "../../core/manifests/api-key.ts";
import { durationOf } from "../../core/manifests/duration.ts";
import { RoleSpec } from "../../core/manifests/role.ts";

/*
 * Schema of the fixtures of `postern simulate`: keys and owners that manifests do not define. The limits are the same as in manifests and
 * the API.
 */

const RESOURCES_MAX = 1_000;

const Name = z.string().min(1).max(253).describe("A name by which cases refer to it.");

const PolicyName = z
  .string()
  .min(1)
  .max(507)
  .describe("The ApiKeyPolicy, NAME or NAMESPACE/NAME; the only one when left out.");

const Ratelimit = z.strictObject({
  name: z.string().min(3).max(255).describe("The limit's name."),
  limit: z.int().min(0).describe("Units per window."),
  duration: durationOf({ msMin: 1000 }).describe("The length of the window, such as 60s."),
  autoApply: z.boolean().default(true).describe("Whether every request is charged, without naming the limit."),
});

const { permissions, roles } = ApiKeySpec.shape;

const Instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

export const Fixtures = z.strictObject({
  now: Instant.optional().describe("The time at which each case begins; the present when left out."),
  roles: z
    .array(RoleSpec.pick({ name: true, permissions: true }))
    .max(RESOURCES_MAX)
    .default([])
    .describe("Roles that no manifest has."),
  identities: z
    .array(
      z.strictObject({
        externalId: z.string().min(1).max(255).describe("The owner's external id in your system."),
        ratelimits: z.array(Ratelimit).max(50).default([]).describe("Limits that its keys share."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("Owners with limits; those without need not be listed."),
  apis: z
    .array(
      z.strictObject({
        policy: PolicyName.optional(),
        ipAllowList: z.array(z.string().min(2).max(64)).max(1_000).default([]).describe("Addresses and CIDR ranges."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("What is set at the APIs of policies."),
  keys: z
    .array(
      z.strictObject({
        name: Name,
        policy: PolicyName.optional(),
        owner: z.string().min(1).max(255).optional().describe("externalId of its owner."),
        roles,
        permissions,
        ratelimits: z.array(Ratelimit).max(50).default([]).describe("Limits of the key itself."),
        credits: z.int().min(0).optional().describe("Credits left; unlimited when left out."),
        enabled: z.boolean().default(true).describe("Whether the key is enabled."),
        expires: Instant.optional().describe("When the key ends."),
      }),
    )
    .max(RESOURCES_MAX)
    .default([])
    .describe("Keys, beside those of ApiKey manifests, which have the names of these."),
});
export type Fixtures = z.output<typeof Fixtures>;
