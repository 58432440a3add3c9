import { DAY_MS } from "../../core/utc-date.ts";

/** How late an event may come. Longer than any outage of the stream that does not lose events in other ways. */
export const LATE_MS_MAX = DAY_MS;
/** How far the clock of a pod may be ahead of ours. */
export const AHEAD_MS_MAX = 3_600_000;

/** Unix ms; both bounds are exclusive. An event before `afterMs` is late, one from `beforeMs` on lies ahead: neither is counted. */
export interface AcceptedTimes {
  readonly afterMs: number;
  readonly beforeMs: number;
}

/**
 * Which events are stored now. The bounds are narrow, because an event can be counted once only while what tells that it
 * was stored is kept: its raw row.
 */
export const acceptedTimes = (nowMs: number): AcceptedTimes => ({
  afterMs: nowMs - LATE_MS_MAX,
  beforeMs: nowMs + AHEAD_MS_MAX,
});
