import { usedAt, type WindowCounts } from "../../core/ratelimits/window.ts";

/** How far this process went beyond limits that it did not count strictly, as far as totals have shown it. */
export class Overshoot {
  #units = 0;
  #largestShare = 0;
  #lastMs: number | undefined;

  /** Its own part of each total above its limit. */
  get units(): number {
    return this.#units;
  }

  /** By how much a total exceeded its limit at most, as a part of the limit: 0.5 is one and a half times the limit. */
  get largestShare(): number {
    return this.#largestShare;
  }

  /** By the clock of the counters, Unix ms; undefined for never. */
  get lastMs(): number | undefined {
    return this.#lastMs;
  }

  /** `own` units of this process are in these totals of a counter, and no earlier call had them. */
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
