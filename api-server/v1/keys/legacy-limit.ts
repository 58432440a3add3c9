import * as z from "zod";
import type { RatelimitRow } from "../../db/ratelimits.ts";
import { RATELIMITS_MAX, type RequestedRatelimit } from "../../domain/ratelimits/new-ratelimits.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";

/*
 * The single limit that v1 supports for a key (api-v1.md section 5). In v2, it is the limit named `default`, with `autoApply`. v1 neither
 * returns nor changes limits with other names.
 */

/** Name of the limit in v2. */
export const LEGACY_LIMIT = "default";

const DURATION_MS_MIN = 1000;

const atLeastOne = (description: string, example: number) =>
  z
    .int()
    .min(1)
    .describe(description)
    .meta({ examples: [example] });

/** A limit in a request. `type` and `async` are accepted but have no effect, because all limits have the same kind of window. */
export const LegacyRatelimit = z
  .object({
    type: z
      .enum(["fast", "consistent"])
      .optional()
      .describe("Accepted for compatibility; has no effect.")
      .meta({ examples: ["fast"] }),
    async: z.boolean().optional().describe("Accepted for compatibility; has no effect."),
    limit: atLeastOne("Units per window.", 100),
    refillRate: atLeastOne("Accepted for compatibility; has no effect.", 100).optional(),
    refillInterval: atLeastOne("Window length in ms, used if `duration` is omitted.", 60_000).optional(),
    duration: atLeastOne("Length of the window, ms; at least 1000.", 60_000).optional(),
  })
  .describe("Rate limit against which each verification counts.");
export type LegacyRatelimit = z.output<typeof LegacyRatelimit>;

/** Throws PublicError 400, with `field` as its location, if the window has no length or is too short. */
export function checkLegacyRatelimit(
  ratelimit: Pick<LegacyRatelimit, "duration" | "refillInterval"> | null | undefined,
  field = "body.ratelimit",
): void {
  if (ratelimit === undefined || ratelimit === null) return;
  const { duration, refillInterval } = ratelimit;
  const durationMs = duration ?? refillInterval;
  if (durationMs === undefined) throw invalidField(`${field}.duration`, "is required unless `refillInterval` is given");
  if (durationMs >= DURATION_MS_MIN) return;
  const name = duration === undefined ? "refillInterval" : "duration";
  throw invalidField(`${field}.${name}`, `expected at least ${DURATION_MS_MIN} ms, got ${durationMs}`);
}

/** Returns the limit in its stored form. Must be called after `checkLegacyRatelimit`. */
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

/** Replaces the v1 limit among the limits of a key; `null` removes it. Throws PublicError 400 if the key would have too many limits. */
export function withLegacyRatelimit(
  held: readonly RequestedRatelimit[],
  ratelimit: LegacyRatelimit | null,
): readonly RequestedRatelimit[] {
  const others = held.filter(({ name }) => name !== LEGACY_LIMIT);
  if (ratelimit === null) return others;
  if (others.length >= RATELIMITS_MAX) {
    throw invalidField(
      "body.ratelimit",
      `the key already has ${others.length} other limits, and the maximum is ${RATELIMITS_MAX}`,
    );
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

/** Returns the limit that v1 returns; `undefined` if the key has no limit with that name. */
export function toLegacyRatelimit(rows: readonly RatelimitRow[]): z.input<typeof LegacyRatelimitOut> | undefined {
  const row = rows.find(({ name }) => name === LEGACY_LIMIT);
  if (row === undefined) return undefined;
  const { max_count: limit, duration_ms: duration } = row;
  return { async: false, limit, duration, refillRate: limit, refillInterval: duration };
}
