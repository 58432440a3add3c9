import { usedAt, type WindowCounts } from "../../core/ratelimits/window.ts";

/**
 * Measures by how much this process exceeded limits that it did not count strictly. It uses the counters' totals, so it misses an excess
 * that they do not show.
 */
export class OverAdmission {
  #units = 0;
  #largestShare = 0;
  #lastMs: number | undefined;

  /** Units that this process contributed to the excess of totals over their limits. */
  get units(): number {
    return this.#units;
  }

  /** Largest amount beyond a limit that was admitted, as a fraction of the limit: 0.5 means that 150 % of the limit was admitted. */
  get largestShare(): number {
    return this.#largestShare;
  }

  /** Time at which a limit was last exceeded, Unix ms of the counters' clock; `undefined` if no limit was exceeded. */
  get lastMs(): number | undefined {
    return this.#lastMs;
  }

  /** Records a counter's current totals. `own` is the part of them that this process has added and not recorded before. */
  note(counts: WindowCounts, of: { limit: number; durationMs: number; nowMs: number; own: number }): void {
    const { limit, own } = of;
    if (own <= 0) return;
    const over = usedAt(counts, of) - limit;
    if (over <= 0) return;
    this.#lastMs = of.nowMs;
    this.#units += Math.min(over, own);
    this.#largestShare = Math.max(this.#largestShare, over / Math.max(1, limit));
  }
}
