import * as z from "zod";
import { EXPIRES_MAX_MS } from "../../core/keys/key-hash.ts";
import { RATELIMITS_MAX } from "../domain/ratelimits/new-ratelimits.ts";

/*
 * Shared field types (api-v2.md section 6). Bounds, descriptions and examples are defined here once; validation and the OpenAPI document
 * are generated from them.
 */

const META_MEMBERS_MAX = 100;

const idPattern = /^[a-zA-Z0-9_]+$/;

export const KeyId = z
  .string()
  .min(3)
  .max(255)
  .regex(idPattern)
  .describe("Id of the key, not its secret.")
  .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] });

/** API id in requests such as apis.getApi. */
export const ApiId = z
  .string()
  .min(8)
  .max(255)
  .regex(idPattern)
  .describe("Id of the API.")
  .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] });

/** API id in a response. */
export const ApiIdOut = z
  .string()
  .describe("Id of the API.")
  .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] });

/** API id in requests of keys.createKey. */
export const ShortApiId = z
  .string()
  .min(3)
  .max(255)
  .regex(idPattern)
  .describe("Id of the API.")
  .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] });

const SLUG_PATTERN = /^[a-zA-Z0-9_:\-.*]+$/;
const SLUG_TEXT = "Slug of a permission. `*` after a separator grants everything below it.";

export const Slug = z
  .string()
  .min(1)
  .max(128)
  .regex(SLUG_PATTERN)
  .describe(SLUG_TEXT)
  .meta({ examples: ["documents.read"] });

/** Slug in requests of keys.updateKey. */
export const UpdateSlug = z
  .string()
  .min(3)
  .max(100)
  .regex(SLUG_PATTERN)
  .describe(SLUG_TEXT)
  .meta({ examples: ["documents.read"] });

export const RoleName = z
  .string()
  .min(1)
  .max(128)
  .describe("Name of a role.")
  .meta({ examples: ["editor"] });
/** Role name in requests of keys.updateKey. */
export const UpdateRoleName = z
  .string()
  .min(1)
  .max(100)
  .describe("Name of a role.")
  .meta({ examples: ["editor"] });

export const ExternalId = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[a-zA-Z0-9_.-]+$/)
  .describe("The owner's external id in your system; case-sensitive.")
  .meta({ examples: ["user_123"] });

export const Meta = z
  .record(z.string(), z.unknown())
  .describe(
    "Metadata: a JSON object with at most 100 members, 10,000 values in total and 1 MiB; less than 10 KB is recommended.",
  )
  .meta({ maxProperties: META_MEMBERS_MAX, examples: [{ plan: "pro" }] });

export const Expires = z
  .int()
  .min(0)
  .max(EXPIRES_MAX_MS)
  .describe("Expiry of the key, Unix ms. A past time expires it immediately.")
  .meta({ examples: [1_893_456_000_000] });

/** Limit in a request; unknown members are ignored. */
export const RatelimitIn = z.object({
  name: z
    .string()
    .min(3)
    .max(128)
    .describe("Name of the limit, by which `verifyKey` calls refer to it.")
    .meta({ examples: ["requests"] }),
  limit: z
    .int()
    .min(1)
    .describe("Units per window.")
    .meta({ examples: [100] }),
  duration: z
    .int()
    .min(1000)
    .describe("Window length in ms.")
    .meta({ examples: [60_000] }),
  autoApply: z
    .boolean()
    .default(false)
    .describe("Whether every verification charges this limit, even if the call does not name it."),
});
export type RatelimitIn = z.output<typeof RatelimitIn>;

export const RatelimitsIn = z.array(RatelimitIn).max(RATELIMITS_MAX);

export const Refill = z
  .strictObject({
    interval: z.enum(["daily", "monthly"]).describe("Interval at which credits are added, at midnight UTC."),
    amount: z
      .int()
      .min(1)
      .describe("Credits added at each refill.")
      .meta({ examples: [1000] }),
    refillDay: z
      .int()
      .min(1)
      .max(31)
      .optional()
      .describe("Day of the month; only with `monthly`. In a shorter month, credits are added on its last day.")
      .meta({ examples: [1] }),
  })
  .meta({ examples: [{ interval: "monthly", amount: 1000, refillDay: 1 }] });
export type Refill = z.output<typeof Refill>;

export const Credits = z.strictObject({
  remaining: z
    .int()
    .min(0)
    .nullable()
    .describe("Remaining credits; null means unlimited.")
    .meta({ examples: [1000] }),
  refill: Refill.optional().describe("Refill of the credits. Not allowed with unlimited credits."),
});

/** Response data of procedures without a result. */
export const Empty = z.strictObject({});

/** Returns the schema of a time in a response, Unix ms. */
export const unixMs = (description: string) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [1_767_225_600_000] });

export const LimitOut = z
  .int()
  .describe("Units per window.")
  .meta({ examples: [100] });
export const DurationOut = z
  .int()
  .describe("Window length in ms.")
  .meta({ examples: [60_000] });
export const AutoApplyOut = z
  .boolean()
  .describe("Whether every verification charges this limit, even if the call does not name it.");
const SlugOut = z.string().meta({ examples: ["documents.read"] });
const RoleNameOut = z.string().meta({ examples: ["editor"] });
export const SlugsOut = z
  .array(SlugOut)
  .describe("Slugs of all permissions that the key holds, directly or through roles.");
export const RoleNamesOut = z.array(RoleNameOut).describe("Names of the key's roles.");
export const KeyNameOut = z
  .string()
  .describe("Display name.")
  .meta({ examples: ["Billing"] });

export const RatelimitOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the limit.")
    .meta({ examples: ["rl_2bCd5Ef8Gh1Jk4Lm"] }),
  name: z
    .string()
    .describe("Name of the limit.")
    .meta({ examples: ["requests"] }),
  limit: LimitOut,
  duration: DurationOut,
  autoApply: AutoApplyOut,
});
export type RatelimitOut = z.output<typeof RatelimitOut>;

export const IdentityOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the identity.")
    .meta({ examples: ["id_7nPq0Rs3Tu6Vw9Xy"] }),
  externalId: z
    .string()
    .describe("External id of the identity in your system.")
    .meta({ examples: ["user_123"] }),
  meta: Meta.optional(),
  ratelimits: z.array(RatelimitOut).optional().describe("Limits that all keys of the identity share."),
});
export type IdentityOut = z.output<typeof IdentityOut>;

export const CreditsOut = z.strictObject({
  remaining: z
    .int()
    .describe("Remaining credits.")
    .meta({ examples: [1000] }),
  refill: Refill.optional().describe("Refill of the credits, if the key has one."),
});

export const KeyOut = z.strictObject({
  keyId: KeyId,
  start: z
    .string()
    .describe("First characters of the secret, to identify the key.")
    .meta({ examples: ["prod_3Ab9"] }),
  enabled: z.boolean().describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  createdAt: unixMs("When the key was created, Unix milliseconds."),
  name: KeyNameOut.optional(),
  meta: Meta.optional(),
  updatedAt: unixMs("When the key was last updated, Unix milliseconds.").optional(),
  lastUsedAt: unixMs(
    "When the key was last verified, Unix milliseconds, to the minute. May be up to 5 minutes behind.",
  ).optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  permissions: SlugsOut.optional(),
  roles: RoleNamesOut.optional(),
  credits: CreditsOut.optional().describe("Credits of the key; omitted if they are unlimited."),
  identity: IdentityOut.optional().describe("Identity that owns the key."),
  plaintext: z
    .string()
    .optional()
    .describe("The secret of a recoverable key, if the request asks for it.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  ratelimits: z.array(RatelimitOut).optional().describe("Limits of the key itself."),
});
export type KeyOut = z.output<typeof KeyOut>;

export const PageLimit = z
  .int()
  .min(1)
  .max(100)
  .default(100)
  .describe("Items per page.")
  .meta({ examples: [100] });
/** Page size, for lists that clients repeatedly read in full. */
export const LongLimit = z
  .int()
  .min(1)
  .max(500)
  .default(100)
  .describe("Items per page.")
  .meta({ examples: [500] });
/** Name of a cluster. The names of the cluster's managers and policies begin with it. */
export const Cluster = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,253}$/)
  .meta({ examples: ["main"] });
export const Cursor = z
  .string()
  .describe("`pagination.cursor` of the previous page.")
  .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] });

/** Search text, which domain/lists/pages.ts trims. The empty string means no search. */
export const Search = z
  .string()
  .max(256)
  .meta({ examples: ["doc"] });

/** Identity in requests about one identity. The maximum length allows for both ids and externalIds. */
export const IdentityName = z
  .string()
  .min(1)
  .max(255)
  .describe("Id or externalId of the identity; an id takes precedence over an equal externalId.")
  .meta({ examples: ["user_123"] });
