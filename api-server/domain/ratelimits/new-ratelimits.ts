import { makeId } from "../../../core/ids.ts";
import type { Deps } from "../../deps.ts";
import type { NewRatelimit } from "../../store/ratelimits.ts";

/** The most limits that a key, or an identity, has. */
export const RATELIMITS_MAX = 50;

/** As in requests; the duration is in ms. */
export interface WantedRatelimit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}

/** Limits with ids, ready to be stored. Of entries with the same name the last one counts. */
export function newRatelimits(
  { randomBytes }: Pick<Deps, "randomBytes">,
  ratelimits: readonly WantedRatelimit[],
): NewRatelimit[] {
  const byName = new Map(ratelimits.map((one) => [one.name, one]));
  return [...byName.values()].map(({ name, limit, duration, autoApply }) => ({
    id: makeId("ratelimit", randomBytes(16)),
    name,
    limit,
    durationMs: duration,
    autoApply,
  }));
}
