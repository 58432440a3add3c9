import * as z from "zod";
import { hashKey } from "../../../core/keys/key-string.ts";
import type { ForeignKey } from "../../domain/keys/import-full-keys.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import { Environment, Expires, KeyName, Remaining, RoleName, Slug } from "../keys/key-fields.ts";
import { LegacyRefill, toCredits } from "../keys/legacy-credits.ts";
import { checkLegacyRatelimit, type LegacyRatelimit, toRatelimit } from "../keys/legacy-limit.ts";
import { OwnerId, ownerOfNew } from "../keys/legacy-owner.ts";
import { Meta } from "../schemas.ts";

/* A key that another system issued, in the form that both migration procedures accept. */

/** Number of leading characters of a plaintext that are stored as `start`, if the item has no `start`. */
const START_CHARACTERS = 4;

/** Fields that both migration procedures accept. */
export const itemFields = {
  plaintext: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe(
      "The secret. The server stores its hash and, if key encryption is enabled for the API, an encrypted copy. Takes precedence over `hash`.",
    )
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  hash: z
    .object({
      value: z
        .string()
        .min(1)
        .max(255)
        .describe("SHA-256 of the complete secret in base64.")
        .meta({ examples: ["uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="] }),
      variant: z
        .enum(["sha256_base64"])
        .describe("Hash algorithm.")
        .meta({ examples: ["sha256_base64"] }),
    })
    .optional()
    .describe("Hash of the key. Required if `plaintext` is missing."),
  start: z
    .string()
    .max(255)
    .optional()
    .describe(
      "Part of the secret that may be shown. Default: the first four characters of a plaintext key, otherwise empty.",
    )
    .meta({ examples: ["prod_5Kd3"] }),
  prefix: z
    .string()
    .max(8)
    .optional()
    .describe("Accepted for compatibility; has no effect.")
    .meta({ examples: ["prod"] }),
  name: KeyName.optional(),
  ownerId: OwnerId.optional(),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of existing roles."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs of existing permissions."),
  expires: Expires.optional(),
  remaining: Remaining.min(1).optional().describe("Credits of the key. Default: unlimited."),
  refill: LegacyRefill.optional(),
  enabled: z
    .boolean()
    .default(true)
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  environment: Environment.optional(),
};

const ItemFields = z.object(itemFields);

type ItemFields = z.output<typeof ItemFields>;

/**
 * Fields in which the two procedures differ. They are passed separately, because an item also contains fields that its procedure ignores.
 */
interface Besides {
  readonly externalId?: string | undefined;
  readonly ratelimit: Pick<LegacyRatelimit, "limit" | "duration" | "refillInterval"> | undefined;
}

/** Throws PublicError 400 for an item with contradictory fields; `at` is the location of the item in the body. */
export function checkItem(item: ItemFields, { ratelimit }: Besides, at: string): void {
  const { plaintext, hash, remaining, refill } = item;
  if (plaintext === undefined && hash === undefined) {
    throw invalidField(`${at}.hash`, "is required without `plaintext`");
  }
  toCredits({ remaining, refill }, `${at}.refill`);
  checkLegacyRatelimit(ratelimit, `${at}.ratelimit`);
}

/** Converts an item. Must be called after `checkItem`. Throws PublicError 400 if the item's meta is too large. */
export function toForeignKey(item: ItemFields, { externalId, ratelimit }: Besides, at: string): ForeignKey {
  const { plaintext, hash, start, name, ownerId, meta, roles = [], permissions = [] } = item;
  checkMeta(meta, `${at}.meta`);
  return {
    hash: plaintext === undefined ? (hash?.value ?? "") : hashKey(plaintext),
    plaintext,
    start: start ?? plaintext?.slice(0, START_CHARACTERS) ?? "",
    name: name === "" ? undefined : name,
    externalId: ownerOfNew({ externalId, ownerId }),
    environment: item.environment,
    meta,
    roles,
    permissions,
    expires: item.expires,
    enabled: item.enabled,
    credits: toCredits(item),
    ratelimits: ratelimit === undefined ? [] : [toRatelimit(ratelimit)],
  };
}
