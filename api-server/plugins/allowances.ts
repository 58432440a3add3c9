import { BoundedCache } from "../../edge/bounded-cache.ts";

/**
 * Maximum number of tracked clients. It exceeds the number of pods that an attacker could run in a cluster, because a client that is
 * evicted starts again with a full allowance.
 */
const ENTRIES_MAX = 10_000;

export interface AllowancesOptions {
  readonly windowMs: number;
  /** Maximum cost per client and window. */
  readonly max: number;
  /** Returns monotonic time, ms. */
  readonly nowMs: () => number;
}

/** Fixed-window rate limiter per untrusted client. A window starts with the first request after the previous one has ended. */
export class Allowances {
  readonly #spent = new BoundedCache<string, { spent: number; readonly endsAtMs: number }>(ENTRIES_MAX);
  readonly #options: AllowancesOptions;

  constructor(options: AllowancesOptions) {
    this.#options = options;
  }

  /** Charges a client. If its allowance is already used up, returns the time until the window ends, ms; otherwise `undefined`. */
  spend(key: string, cost: number): number | undefined {
    const { windowMs, max, nowMs } = this.#options;
    const now = nowMs();
    const known = this.#spent.get(key);
    if (known === undefined || known.endsAtMs <= now) {
      this.#spent.set(key, { spent: cost, endsAtMs: now + windowMs });
      return undefined;
    }
    if (known.spent >= max) return known.endsAtMs - now;
    known.spent += cost;
    return undefined;
  }
}
