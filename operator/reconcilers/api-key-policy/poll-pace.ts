export interface Pace {
  readonly soonMs: number;
  /** Start of the current state. The poll interval grows with the age of the state. */
  readonly sinceMs: number;
}

/** Poll interval while no change is expected. */
export const REST_MS = 15_000;

/** The poll interval is the age of the state divided by this number: for example, 2 s after one minute, and 15 s after 450 s. */
const POLLS_PER_AGE = 30;

/** Returns the delay until the next poll: the delay of the most urgent policy, but at most `REST_MS`. Pure. */
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
