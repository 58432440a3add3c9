export interface PaceLimits {
  /** Without a byte; and the window over which `bytesPerSecondMin` counts. */
  readonly idleMs: number;
  /** 0 sets no floor. */
  readonly bytesPerSecondMin: number;
}

/**
 * Whether a body comes fast enough. Only the time counts in which somebody waits for more of it: a client is not to blame
 * for an app that does not read. A floor as well as an idle time, because a byte now and then is never idle. Over windows
 * and not over the whole body, because a fast beginning would pay for hours of dripping.
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

  /** Somebody waits for more, from now on: what was before says nothing about the client. */
  waitFrom(nowMs: number): void {
    this.#movedMs = nowMs;
  }

  /** To be asked about once a second, with whether somebody waits for more. */
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
