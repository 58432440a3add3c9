/* Exponential backoff with jitter. The caller passes the random source, so that tests are deterministic. */

/** Returns a number in [0, 1), like `Math.random`. */
export type Random = () => number;

export interface Growth {
  readonly firstMs: number;
  readonly maxMs: number;
}

export interface Backoff extends Growth {
  readonly random: Random;
}

/**
 * Returns the wait after `failures` consecutive failures (1 is the first): doubled each time, up to `maxMs`. Half of it is random, so that
 * operations that failed together are not retried together.
 */
export function backoffMs(failures: number, { firstMs, maxMs, random }: Backoff): number {
  // Limits the exponent, so that the power stays finite after many failures. `2 ** 30` exceeds every practical `maxMs / firstMs`.
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return jitterMs(fullMs, 0.5, random);
}

/** Returns `ms`, minus a random part of at most `share` of it. */
export function jitterMs(ms: number, share: number, random: Random): number {
  return Math.round(ms * (1 - share * random()));
}

/** Returns the next wait: twice `lastMs` (0 before the first wait), but at least `firstMs` and at most `maxMs`. Adds no jitter. */
export function doubledMs(lastMs: number, { firstMs, maxMs }: Growth): number {
  return Math.min(maxMs, Math.max(firstMs, 2 * lastMs));
}
