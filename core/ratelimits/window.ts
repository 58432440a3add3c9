/*
 * The sliding window made of two fixed ones, aligned to the epoch (api-v2.md section 9.1):
 *
 *   effective = current + floor(previous × share of the window that is left) + cost, and it passes when that is ≤ limit
 *
 * All numbers are integers up to 2^53 − 1, durations up to 2^34 ms, and the floor is exact, also where previous × duration is
 * beyond what a double holds (`portionOf`): here and in the scripts of the shared store, so that both agree.
 * Because the carried part is never negative, what passes in one aligned window never exceeds the limit.
 *
 * A clock behind `counts.window` counts as that window's start: counts are not rolled back. Only when it is far behind them, they were counted by
 * a clock that was wrong, and are ignored; else they would refuse until that time has come.
 */

/** How far the clocks of two servers of one store may be apart, or one clock may be corrected, without a window passing more than its limit. */
export const CLOCK_BEHIND_MS_MAX = 60_000;

export interface WindowCounts {
  /** The number of the window that `current` belongs to: floor(time / duration). */
  readonly window: number;
  readonly current: number;
  readonly previous: number;
}

export interface LimitQuestion {
  /** 0 refuses everything. */
  readonly limit: number;
  readonly durationMs: number;
  readonly counts: WindowCounts | undefined;
  /** 0 checks without consuming, and still passes at exactly the limit. */
  readonly cost: number;
  readonly nowMs: number;
}

export interface LimitDecision {
  readonly passed: boolean;
  readonly remaining: number;
  /** Unix ms: the end of the current window. */
  readonly resetMs: number;
  /** The counts afterwards; of a refusal those before, rolled to the window of `nowMs`. */
  readonly counts: WindowCounts;
  readonly effective: number;
}

export function windowAt(nowMs: number, durationMs: number): { seq: number; startMs: number; resetMs: number } {
  const seq = Math.floor(nowMs / durationMs);
  const startMs = seq * durationMs;
  return { seq, startMs, resetMs: startMs + durationMs };
}

/** Whether the counts are of a window that begins so much later that the clock which counted them was wrong. */
const isOfWrongClock = (
  { window }: WindowCounts,
  { durationMs, nowMs }: { durationMs: number; nowMs: number },
): boolean => window * durationMs - nowMs > Math.max(durationMs, CLOCK_BEHIND_MS_MAX);

/** Returns the counts rolled to the window of `nowMs`, or unchanged when they are of a later window. */
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
export function decideLimit({ limit, durationMs, counts, cost, nowMs }: LimitQuestion): LimitDecision {
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
 * Returns the first millisecond, not before `nowMs`, at which the charge passes if no other caller consumes in between; Infinity if
 * it never can. What others consume only makes it later, so a refusal may be repeated from a cache until then.
 *
 * The used amount never grows with time, within a window or over its end, and is 0 two windows later. So the moment is
 * found by bisection, with the same function that decides: 32 steps for a window of a month, and no rounding of its own.
 */
export function admitsAt({ limit, durationMs, counts, cost, nowMs }: LimitQuestion): number {
  if (limit <= 0 || cost > limit) return Number.POSITIVE_INFINITY;
  const room = limit - cost;
  if (counts === undefined || usedAt(counts, { durationMs, nowMs }) <= room) return nowMs;
  let refusedAt = nowMs;
  let passesAt = (Math.max(counts.window, Math.floor(nowMs / durationMs)) + 2) * durationMs;
  while (passesAt - refusedAt > 1) {
    const between = refusedAt + Math.floor((passesAt - refusedAt) / 2);
    // Far in the future doubles are more than a millisecond apart, and nothing is in between.
    if (between <= refusedAt || between >= passesAt) break;
    if (usedAt(counts, { durationMs, nowMs: between }) <= room) passesAt = between;
    else refusedAt = between;
  }
  return passesAt;
}

/** Returns the used amount at a moment: `current` and the share of `previous` that the sliding window still covers. */
export function usedAt(counts: WindowCounts, { durationMs, nowMs }: { durationMs: number; nowMs: number }): number {
  const seq = Math.floor(nowMs / durationMs);
  if (seq > counts.window + 1 || isOfWrongClock(counts, { durationMs, nowMs })) return 0;
  const isNext = seq === counts.window + 1;
  const current = isNext ? 0 : counts.current;
  const previous = isNext ? counts.current : counts.previous;
  if (previous === 0) return current;
  const elapsedMs = seq < counts.window ? 0 : nowMs - seq * durationMs;
  return current + portionOf(previous, durationMs - elapsedMs, durationMs);
}

const SPLIT = 2 ** 16;

/**
 * Returns floor(amount × part / whole) for part ≤ whole. A product beyond 2^53 is avoided: it could round up, so that a full window
 * would count one unit too many. Then the division is done in steps, as on paper, each of which a double holds exactly.
 */
function portionOf(amount: number, part: number, whole: number): number {
  const product = amount * part;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole);
  const rest = amount % whole;
  const high = rest * Math.floor(part / SPLIT);
  const low = (high % whole) * SPLIT + rest * (part % SPLIT);
  return Math.floor(amount / whole) * part + Math.floor(high / whole) * SPLIT + Math.floor(low / whole);
}
