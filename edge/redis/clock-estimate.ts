/*
 * Estimates Redis time from the monotonic clock. The offset assumes that Redis read its clock when the request was sent. So the estimate is
 * ahead by at most the request's latency, and behind by at most the clock drift between two measurements: ages computed from it are too
 * large rather than too small.
 *
 * After a failover, Redis time comes from the clock of another machine, which may be behind. Messages in flight may still contain times of
 * the old clock, which would look too fresh by the new clock. So an estimate moves back only after a delay, when all earlier messages have
 * arrived.
 */

export interface ClockMeasurement {
  /** Monotonic clock when the request was sent, and when the reply arrived. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** Time on the Redis clock at some moment between sending the command and receiving the reply, Unix ms. */
  readonly storeMs: number;
}

export const HELD_MS = 10_000;

/** Maximum relative clock drift. A clock that is being adjusted gradually is off by 0.05 %. */
const DRIFT = 0.001;

/** Bounds of the difference between Redis clock and monotonic clock, at one time of the monotonic clock. */
interface Offset {
  readonly least: number;
  readonly most: number;
  readonly atMs: number;
}

export class ClockEstimate {
  #offset: Offset | undefined;
  /** Offset that was measured before the Redis clock jumped back. It stays in use for a while. */
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
      // The clock has not been set, so both ranges are valid. Their intersection is used, because a slow reply gives a wide range.
      this.#offset = { ...measured, least: Math.max(least, measured.least), most: Math.min(most, measured.most) };
    }
  }

  /** Returns the estimated Redis time; `undefined` before the first measurement. */
  nowMs(monotonicMs: number): number | undefined {
    if (this.#offset === undefined) return undefined;
    return monotonicMs + Math.max(this.#offset.most, this.#heldAt(monotonicMs));
  }

  #heldAt(monotonicMs: number): number {
    if (this.#held === undefined || monotonicMs >= this.#held.untilMs) return Number.NEGATIVE_INFINITY;
    return this.#held.offsetMs;
  }
}
