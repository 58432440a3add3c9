import { DAY_MS } from "../core/utc-date.ts";
import type { UsageEvent } from "../edge/events/contract.ts";

/** Maximum age of an event. An outage that delays events for longer than this loses events for other reasons anyway. */
export const LATE_MS_MAX = DAY_MS;
/** Maximum time by which the clock of a pod may be ahead. */
export const AHEAD_MS_MAX = 3_600_000;

/**
 * Accepted range in Unix ms; both bounds are exclusive. Late events (before `afterMs`) and future events (from `beforeMs` on) are
 * discarded.
 */
export interface AcceptedTimes {
  readonly afterMs: number;
  readonly beforeMs: number;
}

/**
 * Returns the accepted range at `nowMs`. The range is narrow, because a duplicate is recognized only while the raw row of the first event
 * exists.
 */
export const acceptedTimes = (nowMs: number): AcceptedTimes => ({
  afterMs: nowMs - LATE_MS_MAX,
  beforeMs: nowMs + AHEAD_MS_MAX,
});

/** Name of the only member that may be a fraction; all other numbers are integers. */
const FRACTION = "latencyMs";

/**
 * Returns the JSON line of an event, without values that a store rejects: U+0000, lone surrogates and fractional counts. Pods can write
 * such values, and a single invalid event would otherwise block its complete batch.
 */
export function cleanLine(event: UsageEvent): string {
  return JSON.stringify(event, (member, value: unknown) => {
    if (typeof value === "string") return value.toWellFormed().replaceAll("\u0000", "\ufffd");
    if (typeof value === "number" && member !== FRACTION) return Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value));
    return value;
  });
}
