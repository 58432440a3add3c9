import { DAY_MS } from "../core/utc-date.ts";
import type { UsageEvent } from "../edge/events/contract.ts";

/** Maximum age of an event. In an outage that delays events for longer than this, events are lost for other reasons anyway. */
export const LATE_MS_MAX = DAY_MS;
/** Maximum time by which the clock of a pod may be ahead. */
export const AHEAD_MS_MAX = 3_600_000;

/** Accepted times in Unix ms. Both bounds are exclusive. Earlier events are discarded as late, and later ones as from the future. */
export interface AcceptedTimes {
  readonly afterMs: number;
  readonly beforeMs: number;
}

/**
 * Returns the accepted times at `nowMs`. The range is narrow, because a duplicate of an event is recognized only while the event's raw row
 * exists.
 */
export const acceptedTimes = (nowMs: number): AcceptedTimes => ({
  afterMs: nowMs - LATE_MS_MAX,
  beforeMs: nowMs + AHEAD_MS_MAX,
});

/** The only member that may be a fraction; all other numbers are integers. */
const FRACTION = "latencyMs";

/**
 * Returns the JSON line of an event, without values that a store rejects: U+0000, lone surrogates and fractional counts. Pods can write
 * such values, and one such event would otherwise block its complete batch.
 */
export function cleanLine(event: UsageEvent): string {
  return JSON.stringify(event, (member, value: unknown) => {
    if (typeof value === "string") return value.toWellFormed().replaceAll("\u0000", "\ufffd");
    if (typeof value === "number" && member !== FRACTION) return Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value));
    return value;
  });
}
