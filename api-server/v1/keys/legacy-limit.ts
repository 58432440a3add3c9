import * as z from "zod";
import type { RatelimitRow } from "../../db/ratelimits.ts";
import { RATELIMITS_MAX, type RequestedRatelimit } from "../../domain/ratelimits/new-ratelimits.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";

/*
 * The one limit of a key that v1 knows (api-v1.md section 5): in v2 it is the limit of this name, with autoApply. Limits of other names
 * are neither shown nor changed by v1.
 */

/** The name of it. */
export const LEGACY_LIMIT = "default";

const DURATION_MS_MIN = 1000;

const atLeastOne = (description: string, example: number) =>
  z
    .int()
    .min(1)
    .describe(description)
    .meta({ examples: [example] });

/** What has no effect is accepted: the windows of all limits are the same. */
export const LegacyRatelimit = z
  .object({
    type: z
      .enum(["fast", "consistent"])
      .optional()
      .describe("Accepted without effect.")
      .meta({ examples: ["fast"] }),
    async: z.boolean().optional().describe("Accepted without effect."),
    limit: atLeastOne("Units per window.", 100),
    refillRate: atLeastOne("Accepted without effect.", 100).optional(),
    refillInterval: atLeastOne("The duration, when that is left out.", 60_000).optional(),
    duration: atLeastOne("Length of the window, ms; at least 1000.", 60_000).optional(),
  })
  .describe("Rate limit that each verification charges.");
export type LegacyRatelimit = z.output<typeof LegacyRatelimit>;

/** Throws PublicError 400 at `field` when the window has no length, or one that is too short. */
export function checkLegacyRatelimit(
  ratelimit: Pick<LegacyRatelimit, "duration" | "refillInterval"> | null | undefined,
  field = "body.ratelimit",
): void {
  if (ratelimit === undefined || ratelimit === null) return;
  const { duration, refillInterval } = ratelimit;
  const durationMs = duration ?? refillInterval;
  if (durationMs === undefined)
    throw invalidField(`${field}.duration`, "is required, or `refillInterval` in its place");
  if (durationMs >= DURATION_MS_MIN) return;
  const name = duration === undefined ? "refillInterval" : "duration";
  throw invalidField(`${field}.${name}`, `expected at least ${DURATION_MS_MIN} ms, got ${durationMs}`);
}

/** The limit as it is stored. To be called after `checkLegacyRatelimit`. */
export const toRatelimit = ({
  limit,
  duration,
  refillInterval,
}: Pick<LegacyRatelimit, "limit" | "duration" | "refillInterval">): RequestedRatelimit => ({
  name: LEGACY_LIMIT,
  limit,
  duration: duration ?? refillInterval ?? DURATION_MS_MIN,
  autoApply: true,
});

/** The limits of a key with another one of v1, or without it (null). Throws PublicError 400 when they would be too many. */
export function withLegacyRatelimit(
  held: readonly RequestedRatelimit[],
  ratelimit: LegacyRatelimit | null,
): readonly RequestedRatelimit[] {
  const others = held.filter(({ name }) => name !== LEGACY_LIMIT);
  if (ratelimit === null) return others;
  if (others.length >= RATELIMITS_MAX) {
    throw invalidField("body.ratelimit", `the key has ${others.length} other limits, and may have ${RATELIMITS_MAX}`);
  }
  return [...others, toRatelimit(ratelimit)];
}

export const LegacyRatelimitOut = z.object({
  async: z.boolean().describe("Accepted for compatibility; always false."),
  limit: atLeastOne("Units per window.", 100),
  duration: atLeastOne("Window length in ms.", 60_000),
  refillRate: atLeastOne("As `limit`.", 100),
  refillInterval: atLeastOne("As `duration`.", 60_000),
});

/** undefined when the key has none of that name. */
export function toLegacyRatelimit(rows: readonly RatelimitRow[]): z.input<typeof LegacyRatelimitOut> | undefined {
  const row = rows.find(({ name }) => name === LEGACY_LIMIT);
  if (row === undefined) return undefined;
  const { max_count: limit, duration_ms: duration } = row;
  return { async: false, limit, duration, refillRate: limit, refillInterval: duration };
}
