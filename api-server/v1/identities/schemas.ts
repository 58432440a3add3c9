import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import type { IdentityRow } from "../../db/identities.ts";
import type { RatelimitRow } from "../../db/ratelimits.ts";
import { Meta } from "../schemas.ts";

/* Fields that the identities.* procedures share (api-v1.md section 9). */

export const IdentityId = z
  .string()
  .min(1)
  .max(255)
  .describe("Id of the identity.")
  .meta({ examples: ["id_7nPq0Rs3Tu6Vw9Xy"] });

export const ExternalId = z
  .string()
  .min(1)
  .max(255)
  .describe("The owner's external id in your system; case-sensitive.")
  .meta({ examples: ["user_123"] });

export const Environment = z
  .string()
  .max(256)
  .default("default")
  .meta({ examples: ["default"] });

const RATELIMITS_MAX = 50;

export const RatelimitItem = z.object({
  name: z
    .string()
    .min(1)
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
});

export const RatelimitItems = z.array(RatelimitItem).max(RATELIMITS_MAX);

export const IdentityResponse = z.object({
  id: IdentityId,
  externalId: ExternalId,
  meta: Meta,
  ratelimits: z.array(RatelimitItem).describe("Limits that all keys of the identity share."),
});
export type IdentityResponse = z.output<typeof IdentityResponse>;

export const toRatelimitItem = ({ name, max_count, duration_ms }: RatelimitRow): z.output<typeof RatelimitItem> => ({
  name,
  limit: max_count,
  duration: duration_ms,
});

export const toIdentityResponse = (row: IdentityRow, ratelimits: readonly RatelimitRow[]): IdentityResponse => ({
  id: row.id,
  externalId: row.external_id,
  meta: { ...row.meta },
  ratelimits: ratelimits.map(toRatelimitItem),
});

/** Throws PublicError 409 if two limits of a request have the same name (in v2, this is a 400). */
export function checkRepeatedNames(ratelimits: readonly { readonly name: string }[]): void {
  const names = ratelimits.map(({ name }) => name);
  const repeated = names.find((name, at) => names.indexOf(name) < at);
  if (repeated === undefined) return;
  throw new PublicError("ratelimit_name_repeated", `Two limits of the request have the name ${repeated}.`);
}
