/*
 * The store's clock, told from our monotonic one. The offset between the two is reckoned as if the store had read its clock
 * when we sent the question, so the estimate runs ahead by the way there at most, and behind by no more than the clocks drift
 * apart between two measurements: what is judged by it looks older than it is, not younger.
 *
 * After a failover another machine's clock answers, which may be behind. What is still on its way to us may name times of the
 * clock before, and by the new one it would look younger than it is. So an estimate that has to go back does so only after a
 * while, in which everything of before has arrived.
 */

export interface ClockMeasurement {
  /** Our monotonic clock when the question was sent, and when the answer had come. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** What the store's clock said in between, Unix ms. */
  readonly storeMs: number;
}

export const HELD_MS = 10_000;

/** How much faster or slower one clock may run than the other; a clock that is being set right slowly runs 0.05 % off. */
const DRIFT = 0.001;

/** The store's clock minus ours lay between these two at a time of ours. */
interface Offset {
  readonly least: number;
  readonly most: number;
  readonly atMs: number;
}

export class ClockEstimate {
  #offset: Offset | undefined;
  /** The offset that still counts after the store's clock went back. */
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
      // The same clock: a question whose answer took long tells less than what was known.
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
