export interface Pace {
  readonly soonMs: number;
  /** Since when it has been so: the longer, the less often. */
  readonly sinceMs: number;
}

/** How often the policies are asked about when nothing is expected to change. */
export const REST_MS = 15_000;

/** The longer something lasts, the less often it is checked: every 2 s in the first minute, every 15 s after 450 s. */
const POLLS_PER_AGE = 30;

/** Returns when to ask next: as soon as the policy that is in the greatest hurry wants it, and not later than at rest. Pure. */
export function pollAfterMs(
  paces: Iterable<Pace | undefined>,
  { nowMs, restMs = REST_MS }: { readonly nowMs: number; readonly restMs?: number },
): number {
  let afterMs = restMs;
  for (const pace of paces) {
    if (pace !== undefined) afterMs = Math.min(afterMs, Math.max(pace.soonMs, (nowMs - pace.sinceMs) / POLLS_PER_AGE));
  }
  return afterMs;
}
