export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** Returns a number in [0, 1); tests replace it. */
  readonly random?: () => number;
}

/**
 * Returns how long to wait after `failures` failures in a row (1 is the first): twice as long each time up to `maxMs`; half of that
 * is random, so that objects that failed together are not retried together.
 */
export function backoffMs(failures: number, { firstMs, maxMs, random = Math.random }: BackoffOptions): number {
  // 2 ** 30 exceeds every cap; the bound keeps the power finite for a key that has failed for months.
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return jitterMs(fullMs, 0.5, random);
}

/** Returns `ms`, minus a random part of at most `share` of it. */
export function jitterMs(ms: number, share: number, random: () => number = Math.random): number {
  return Math.round(ms * (1 - share * random()));
}
