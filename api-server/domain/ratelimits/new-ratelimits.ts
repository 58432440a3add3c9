import { makeId } from "../../../core/ids.ts";
import type { NewRatelimit } from "../../db/ratelimits.ts";
import type { ChangeDeps } from "../deps.ts";

/** Maximum number of limits per key or identity. */
export const RATELIMITS_MAX = 50;

/** A limit in a request; the duration is in ms. */
export interface RequestedRatelimit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}

/** Returns limits with ids, ready to be stored. If several entries have the same name, the last one applies. */
export function newRatelimits(
  { randomBytes }: Pick<ChangeDeps, "randomBytes">,
  ratelimits: readonly RequestedRatelimit[],
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
