export interface PaceLimits {
  /** Maximum time without a byte. Also the period over which `bytesPerSecondMin` is measured. */
  readonly idleMs: number;
  /** Minimum rate in bytes per second; 0 means no minimum. */
  readonly bytesPerSecondMin: number;
}

/**
 * Checks that a body arrives fast enough. Only time in which the app waits for data counts, because a client is not responsible for an app
 * that does not read. A minimum rate applies as well, because a client that sends one byte at a time is never idle. The rate is measured
 * per period; otherwise a fast start would compensate for hours of slow data.
 */
export class BodyPace {
  readonly #limits: PaceLimits;
  #movedMs: number;
  #windowFromMs: number;
  #windowBytes = 0;

  constructor(limits: PaceLimits, nowMs: number) {
    this.#limits = limits;
    this.#movedMs = nowMs;
    this.#windowFromMs = nowMs;
  }

  moved(bytes: number, nowMs: number): void {
    this.#movedMs = nowMs;
    this.#windowBytes += bytes;
  }

  /** Restarts the idle time when the app begins to wait for more data. */
  waitFrom(nowMs: number): void {
    this.#movedMs = nowMs;
  }

  /** Returns whether the body is too slow. Called about once a second; `isWaiting` states whether the app is waiting for more data. */
  isTooSlow(nowMs: number, isWaiting: boolean): boolean {
    if (!isWaiting) {
      this.waitFrom(nowMs);
      this.#openWindow(nowMs);
      return false;
    }
    const { idleMs, bytesPerSecondMin } = this.#limits;
    if (nowMs - this.#movedMs >= idleMs) return true;
    const windowMs = nowMs - this.#windowFromMs;
    if (windowMs < idleMs) return false;
    const isTooSlow = this.#windowBytes < (bytesPerSecondMin * windowMs) / 1000;
    this.#openWindow(nowMs);
    return isTooSlow;
  }

  #openWindow(nowMs: number): void {
    this.#windowFromMs = nowMs;
    this.#windowBytes = 0;
  }
}
