/*
 * A sliding window over two fixed windows, which are aligned to the epoch (api-v2.md section 9.1):
 *
 * effective = current + floor(previous × remaining fraction of the window) + cost; the charge passes if effective ≤ limit
 *
 * All numbers are integers up to 2^53 − 1, and durations are at most 2^34 ms. The floor is exact even if previous × duration exceeds the
 * precision of a double (`batchOf`). The scripts of the shared store round in the same way, so that both agree. The part from the previous
 * window is never negative, so the units that pass in one aligned window never exceed the limit.
 *
 * A clock behind `counts.window` is treated as the start of that window, because counts are never rolled back. Counts from a window far in
 * the future come from a wrong clock and are ignored, because they would otherwise reject requests until that time.
 */

/**
 * Maximum clock difference at which no window exceeds its limit. The clocks of two servers of one Redis can differ, and a clock can be
 * corrected.
 */
export const CLOCK_BEHIND_MS_MAX = 60_000;

export interface WindowCounts {
  /** Number of the window that `current` belongs to: floor(time / duration). */
  readonly window: number;
  readonly current: number;
  readonly previous: number;
}

export interface LimitRequest {
  /** Units per window; 0 rejects every charge. */
  readonly limit: number;
  readonly durationMs: number;
  readonly counts: WindowCounts | undefined;
  /** Units to consume. A charge of 0 consumes nothing, and passes even when the limit is exactly used up. */
  readonly cost: number;
  readonly nowMs: number;
}

export interface LimitDecision {
  readonly passed: boolean;
  readonly remaining: number;
  /** End of the current window, Unix ms. */
  readonly resetMs: number;
  /** Counts after the charge; for a rejection, the previous counts rolled to the window of `nowMs`. */
  readonly counts: WindowCounts;
  readonly effective: number;
}

export function windowAt(nowMs: number, durationMs: number): { seq: number; startMs: number; resetMs: number } {
  const seq = Math.floor(nowMs / durationMs);
  const startMs = seq * durationMs;
  return { seq, startMs, resetMs: startMs + durationMs };
}

/** Returns whether the window of the counts begins so far in the future that they must come from a wrong clock. */
const isOfWrongClock = (
  { window }: WindowCounts,
  { durationMs, nowMs }: { durationMs: number; nowMs: number },
): boolean => window * durationMs - nowMs > Math.max(durationMs, CLOCK_BEHIND_MS_MAX);

/** Returns the counts rolled to the window of `nowMs`, or unchanged if they belong to a later window. */
export function rollCounts(
  counts: WindowCounts | undefined,
  at: { readonly durationMs: number; readonly nowMs: number },
): WindowCounts {
  const seq = Math.floor(at.nowMs / at.durationMs);
  if (counts === undefined || isOfWrongClock(counts, at)) return { window: seq, current: 0, previous: 0 };
  if (counts.window >= seq) return counts;
  return { window: seq, current: 0, previous: counts.window === seq - 1 ? counts.current : 0 };
}

/** Decides one charge on one counter and returns the counts afterwards. */
export function decideLimit({ limit, durationMs, counts, cost, nowMs }: LimitRequest): LimitDecision {
  const rolled = rollCounts(counts, { durationMs, nowMs });
  const effective = usedAt(rolled, { durationMs, nowMs }) + cost;
  const passed = limit > 0 && effective <= limit;
  return {
    passed,
    remaining: passed ? limit - effective : 0,
    resetMs: (rolled.window + 1) * durationMs,
    counts: passed && cost > 0 ? { ...rolled, current: rolled.current + cost } : rolled,
    effective,
  };
}

/**
 * Returns the first millisecond, not before `nowMs`, at which the charge passes if no other caller consumes in between; `Infinity` if it
 * never can. Other callers can only make this time later, so a rejection may be cached until then.
 *
 * The used amount never grows with time, within a window or across its end, and is 0 two windows later. So the time is found by bisection,
 * with the same function that decides: 32 steps for a window of a month. Bisection adds no rounding errors.
 */
export function admitsAt({ limit, durationMs, counts, cost, nowMs }: LimitRequest): number {
  if (limit <= 0 || cost > limit) return Number.POSITIVE_INFINITY;
  const available = limit - cost;
  if (counts === undefined || usedAt(counts, { durationMs, nowMs }) <= available) return nowMs;
  let refusedAt = nowMs;
  let passesAt = (Math.max(counts.window, Math.floor(nowMs / durationMs)) + 2) * durationMs;
  while (passesAt - refusedAt > 1) {
    const between = refusedAt + Math.floor((passesAt - refusedAt) / 2);
    // For times far in the future, adjacent doubles are more than a millisecond apart, so there may be no value between the two times.
    if (between <= refusedAt || between >= passesAt) break;
    if (usedAt(counts, { durationMs, nowMs: between }) <= available) passesAt = between;
    else refusedAt = between;
  }
  return passesAt;
}

/** Returns the used amount at a timestamp: `current` plus the fraction of `previous` that the sliding window still covers. */
export function usedAt(counts: WindowCounts, { durationMs, nowMs }: { durationMs: number; nowMs: number }): number {
  const seq = Math.floor(nowMs / durationMs);
  if (seq > counts.window + 1 || isOfWrongClock(counts, { durationMs, nowMs })) return 0;
  const isNext = seq === counts.window + 1;
  const current = isNext ? 0 : counts.current;
  const previous = isNext ? counts.current : counts.previous;
  if (previous === 0) return current;
  const elapsedMs = seq < counts.window ? 0 : nowMs - seq * durationMs;
  return current + batchOf(previous, durationMs - elapsedMs, durationMs);
}

const SPLIT = 2 ** 16;

/**
 * Returns floor(amount × part / whole) for part ≤ whole. A product beyond 2^53 could round up, and a full window would then count one unit
 * too many. Long division avoids this error, because doubles represent each of its steps exactly.
 */
function batchOf(amount: number, part: number, whole: number): number {
  const product = amount * part;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole);
  const rest = amount % whole;
  const high = rest * Math.floor(part / SPLIT);
  const low = (high % whole) * SPLIT + rest * (part % SPLIT);
  return Math.floor(amount / whole) * part + Math.floor(high / whole) * SPLIT + Math.floor(low / whole);
}
