/*
 * The store's clock, estimated from our monotonic one. The offset is computed as if the store had read its clock when we sent the
 * request. So the estimate is ahead by at most the time of the request's way, and behind by no more than the clocks drift between two
 * measurements: ages that use it come out too large rather than too small.
 *
 * After a failover another machine's clock answers, which may be behind. Messages in flight may still name times of the old clock,
 * and by the new clock these would look too fresh. So an estimate that has to go back does so only after a while, when everything
 * from before has arrived.
 */

export interface ClockMeasurement {
  /** Our monotonic clock when the request was sent, and when the reply had arrived. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** What the store's clock read in between, Unix ms. */
  readonly storeMs: number;
}

export const HELD_MS = 10_000;

/** How much faster or slower one clock may run than the other; a clock that is being corrected slowly is 0.05 % off. */
const DRIFT = 0.001;

/** The store's clock minus ours was between these two at a time of ours. */
interface Offset {
  readonly least: number;
  readonly most: number;
  readonly atMs: number;
}

export class ClockEstimate {
  #offset: Offset | undefined;
  /** The offset that is still used after the store's clock went back. */
  #held: { readonly offsetMs: number; readonly untilMs: number } | undefined;

  take({ sentMs, receivedMs, storeMs }: ClockMeasurement): void {
    const measured = { least: storeMs - receivedMs, most: storeMs - sentMs, atMs: receivedMs };
    const before = this.#offset;
    this.#offset = measured;
    if (before === undefined) return;
    const drift = DRIFT * (receivedMs - before.atMs);
    const [least, most] = [before.least - drift, before.most + drift];
    if (measured.most < least) {
      this.#held = { offsetMs: Math.max(before.most, this.#heldAt(receivedMs)), untilMs: receivedMs + HELD_MS };
    } else if (measured.least <= most) {
      // The same clock: a reply that took long narrows the range less than what was known.
      this.#offset = { ...measured, least: Math.max(least, measured.least), most: Math.min(most, measured.most) };
    }
  }

  /** undefined before the first measurement. */
  nowMs(monotonicMs: number): number | undefined {
    if (this.#offset === undefined) return undefined;
    return monotonicMs + Math.max(this.#offset.most, this.#heldAt(monotonicMs));
  }

  #heldAt(monotonicMs: number): number {
    if (this.#held === undefined || monotonicMs >= this.#held.untilMs) return Number.NEGATIVE_INFINITY;
    return this.#held.offsetMs;
  }
}
