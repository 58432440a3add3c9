/*
 * How long to wait before the next try. Each caller brings its bounds and its random numbers; tests bring numbers that they know.
 */

/** A number in [0, 1), such as `Math.random` returns. */
export type Random = () => number;

export interface Growth {
  readonly firstMs: number;
  readonly maxMs: number;
}

export interface Backoff extends Growth {
  readonly random: Random;
}

/**
 * Returns how long to wait after `failures` failures in a row (1 is the first): twice as long each time up to `maxMs`; half of that
 * is random, so that what failed together is not retried together.
 */
export function backoffMs(failures: number, { firstMs, maxMs, random }: Backoff): number {
  // 2 ** 30 exceeds every cap; the bound keeps the power finite for a key that has failed for months.
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return jitterMs(fullMs, 0.5, random);
}

/** Returns `ms`, minus a random part of at most `share` of it. */
export function jitterMs(ms: number, share: number, random: Random): number {
  return Math.round(ms * (1 - share * random()));
}

/** Returns the wait that follows one of `lastMs` (0 is none): twice as long, within the bounds, and nothing random. */
export function doubledMs(lastMs: number, { firstMs, maxMs }: Growth): number {
  return Math.min(maxMs, Math.max(firstMs, 2 * lastMs));
}
