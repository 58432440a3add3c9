import { BoundedCache } from "../edge/bounded-cache.ts";

/** More addresses than an attacker has pods in a cluster. An address that is forgotten has a new allowance. */
const ENTRIES_MAX = 10_000;

export interface AllowancesOptions {
  readonly windowMs: number;
  /** What each may spend in a window. */
  readonly max: number;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** What each of many strangers may cost, in fixed windows, each of which begins with the first use after the one before. */
export class Allowances {
  readonly #spent = new BoundedCache<string, { spent: number; readonly endsAtMs: number }>(ENTRIES_MAX);
  readonly #options: AllowancesOptions;

  constructor(options: AllowancesOptions) {
    this.#options = options;
  }

  /** Returns the ms until the window ends when nothing was left before. */
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
