/*
 * The places at the app: how many requests may be with it at once, who gets the next one, and how long the others wait.
 *
 * Places are shared by client address, because one address could otherwise hold all of them for as long as it likes. How many
 * an address may hold follows what is left: fewer than `ratio` times the free places. An address that is alone therefore gets
 * `share` of all places; the more the others hold, the fewer it gets; and one that holds none always finds a free one, unless
 * very many addresses hold places at once. Fixed portions would do neither: few of them waste places on a quiet day, many
 * let a few addresses take everything.
 */

/** Who wants a place: told once, by one of the two. */
export interface PlaceSeeker {
  /** Under which address places are counted; requests of the same address compete with one another first. */
  readonly address: string;
  onPlace(): void;
  /** No place became free in time. */
  onNoPlace(): void;
}

export interface PlacesOptions {
  readonly max: number;
  /** What one address alone may hold of all places, over 0 up to 1. At 1 addresses do not count. */
  readonly share: number;
  /** How long a seeker waits. */
  readonly waitMs: number;
}

export class Places {
  readonly #max: number;
  readonly #ratio: number;
  readonly #waitMs: number;
  #taken = 0;
  #isServing = false;
  /** Places that each address holds; only those that hold some. */
  readonly #held = new Map<string, number>();
  /** By address, and within it the oldest first. The addresses take turns: the one that got a place goes to the end. */
  readonly #lines = new Map<string, Set<PlaceSeeker>>();
  /** All who wait and since when, the oldest first. */
  readonly #waiting = new Map<PlaceSeeker, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ max, share, waitMs }: PlacesOptions) {
    this.#max = max;
    this.#ratio = share / (1 - share);
    this.#waitMs = waitMs;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a place now. False when there is none for this address; nothing waits then. */
  tryTake(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (!this.#mayTake(held)) return false;
    this.#taken += 1;
    this.#held.set(address, held + 1);
    return true;
  }

  /** Takes a place now, in which case `onPlace` is called before this returns, or waits for one. */
  seek(seeker: PlaceSeeker): void {
    const { address } = seeker;
    // Not past those of the same address that wait already.
    if (!this.#lines.has(address) && this.tryTake(address)) {
      seeker.onPlace();
      return;
    }
    const line = this.#lines.get(address);
    if (line === undefined) this.#lines.set(address, new Set([seeker]));
    else line.add(seeker);
    this.#waiting.set(seeker, performance.now());
    this.#timer ??= setTimeout(this.#giveUpLate, this.#waitMs);
  }

  /** Gives back a place that was taken for `address`; whoever waits and may have it gets it. */
  release(address: string): void {
    this.#taken -= 1;
    const held = this.#held.get(address) ?? 0;
    if (held > 1) this.#held.set(address, held - 1);
    else this.#held.delete(address);
    if (this.#waiting.size > 0) this.#serve();
  }

  /** False: it does not wait. It is told nothing any more. */
  leave(seeker: PlaceSeeker): boolean {
    if (!this.#waiting.delete(seeker)) return false;
    const line = this.#lines.get(seeker.address);
    line?.delete(seeker);
    if (line?.size === 0) this.#lines.delete(seeker.address);
    return true;
  }

  /** Nobody waits any more: all who did are told that there is no place. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const seeker of [...this.#waiting.keys()]) {
      this.leave(seeker);
      seeker.onNoPlace();
    }
  }

  #mayTake(held: number): boolean {
    const free = this.#max - this.#taken;
    return free > 0 && held < this.#ratio * free;
  }

  #serve(): void {
    // A place that is given back while it is handed over is dealt with by the round that goes on.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      // An address that goes to the end comes up again in this round, but only after it took a place, so the round ends.
      for (const [address, line] of this.#lines) {
        if (this.#taken >= this.#max) return;
        const [seeker] = line;
        if (seeker === undefined || !this.tryTake(address)) continue;
        this.leave(seeker);
        if (line.size > 0) {
          this.#lines.delete(address);
          this.#lines.set(address, line);
        }
        seeker.onPlace();
      }
    } finally {
      this.#isServing = false;
    }
  }

  readonly #giveUpLate = (): void => {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const [seeker, sinceMs] of this.#waiting) {
      const leftMs = sinceMs + this.#waitMs - nowMs;
      if (leftMs > 0) {
        this.#timer = setTimeout(this.#giveUpLate, Math.ceil(leftMs));
        return;
      }
      this.leave(seeker);
      seeker.onNoPlace();
    }
  };
}
