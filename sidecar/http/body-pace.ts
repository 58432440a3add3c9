export interface PaceLimits {
  /** The longest time without a byte; and the window for `bytesPerSecondMin`. */
  readonly idleMs: number;
  /** 0 means no minimum. */
  readonly bytesPerSecondMin: number;
}

/**
 * Whether a body arrives fast enough. Only time in which the app waits for more counts, because a client is not responsible
 * for an app that does not read. There is a minimum rate besides the idle time, because a byte now and then is never idle. It is
 * checked per window and not over the whole body, because otherwise a fast beginning would allow hours of dripping.
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

  /** The app waits for more from now on; the time before does not count. */
  waitFrom(nowMs: number): void {
    this.#movedMs = nowMs;
  }

  /** Call it about once a second, with whether the app waits for more. */
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
