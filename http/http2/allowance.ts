export interface AllowanceLimits {
  readonly burst: number;
  readonly perSecond: number;
}

/** Token bucket that allows a burst, and then a rate per second. */
export class Allowance {
  readonly #limits: AllowanceLimits;
  #left: number;
  #atMs: number;

  constructor(limits: AllowanceLimits, nowMs: number) {
    this.#limits = limits;
    this.#left = limits.burst;
    this.#atMs = nowMs;
  }

  /** Takes a token. Returns false if the rate is exceeded. */
  take(nowMs: number): boolean {
    const { burst, perSecond } = this.#limits;
    this.#left = Math.min(burst, this.#left + (perSecond * (nowMs - this.#atMs)) / 1000);
    this.#atMs = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  giveBack(): void {
    this.#left = Math.min(this.#limits.burst, this.#left + 1);
  }
}
