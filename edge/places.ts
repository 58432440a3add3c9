/*
 * The places at what can serve only so many at once, such as the app: who gets the next place, and how long others wait.
 *
 * Places are shared by client address, because otherwise one address could hold all of them for as long as it likes. The number that
 * an address may hold depends on what is left: fewer than a certain ratio of the free places. So a single address gets
 * `share` of all places; the more the others hold, the fewer it gets; and an address that holds none finds a free one, unless
 * very many addresses hold places at once. Fixed portions would be worse: few large ones waste places on a quiet day, many
 * small ones let a few addresses take everything.
 */

/** Waits for a place. Exactly one of the two methods is called, once. */
export interface PlaceSeeker {
  /** The address for which places are counted; requests of the same address are queued in order. */
  readonly address: string;
  /** What it keeps in memory while it waits. Only asked for when it has to. */
  readonly bytes: number;
  onPlace(): void;
  /** No place became free in time, or too many wait already; then it is called before `seek` returns. */
  onNoPlace(): void;
}

export interface PlacesOptions {
  readonly max: number;
  /** The part of all places that one address alone may hold, above 0 and up to 1. At 1 addresses are ignored. */
  readonly share: number;
  /** How long a seeker waits. */
  readonly waitMs: number;
  /** How many seekers may wait, and how many bytes they may keep together; each address alone `share` of both. None may wait when left out. */
  readonly waiting?: { readonly max: number; readonly bytesMax: number };
}

interface Line {
  /** Oldest first. */
  readonly seekers: Set<PlaceSeeker>;
  bytes: number;
}

interface Wait {
  readonly sinceMs: number;
  readonly bytes: number;
}

/** Whether an address that holds `held` places may have another one, when `free` are left for all. */
export type MayHold = (held: number, free: number) => boolean;

/** By this rule an address alone gets `share` of all places, as in `PlacesOptions`. */
export function sharedBy(share: number): MayHold {
  const ratio = share / (1 - share);
  return (held, free) => free > 0 && held < ratio * free;
}

export class Places {
  readonly #max: number;
  readonly #mayHold: MayHold;
  readonly #waitMs: number;
  #taken = 0;
  #isServing = false;
  /** Places by address; only addresses that hold some. */
  readonly #held = new Map<string, number>();
  /** By address. The addresses take turns: one that got a place moves to the end. */
  readonly #lines = new Map<string, Line>();
  /** All waiting seekers, oldest first. */
  readonly #waiting = new Map<PlaceSeeker, Wait>();
  readonly #bounds: { readonly max: number; readonly bytesMax: number };
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ max, share, waitMs, waiting = { max: 0, bytesMax: 0 } }: PlacesOptions) {
    this.#bounds = waiting;
    this.#max = max;
    this.#mayHold = sharedBy(share);
    this.#waitMs = waitMs;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a place now. Returns false when there is none for this address; it does not wait. */
  tryTake(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (!this.#mayHold(held, this.#max - this.#taken)) return false;
    this.#taken += 1;
    this.#held.set(address, held + 1);
    return true;
  }

  /** Takes a place now, in which case `onPlace` is called before this returns, or waits for one, or may not. */
  seek(seeker: PlaceSeeker): void {
    const { address } = seeker;
    // Not before waiting requests of the same address.
    if (!this.#lines.has(address) && this.tryTake(address)) {
      seeker.onPlace();
      return;
    }
    const { bytes } = seeker;
    const line = this.#lines.get(address) ?? { seekers: new Set(), bytes: 0 };
    if (!this.#mayWait(line, bytes)) {
      seeker.onNoPlace();
      return;
    }
    line.seekers.add(seeker);
    line.bytes += bytes;
    this.#lines.set(address, line);
    this.#waiting.set(seeker, { sinceMs: performance.now(), bytes });
    this.#waitingBytes += bytes;
    this.#timer ??= setTimeout(this.#giveUpLate, this.#waitMs);
  }

  /** Releases a place of `address`, and gives it to a waiting seeker that may have it. */
  release(address: string): void {
    this.#taken -= 1;
    const held = this.#held.get(address) ?? 0;
    if (held > 1) this.#held.set(address, held - 1);
    else this.#held.delete(address);
    if (this.#waiting.size > 0) this.#serve();
  }

  /** Stops waiting; no method of the seeker is called any more. Returns false when it was not waiting. */
  leave(seeker: PlaceSeeker): boolean {
    const wait = this.#waiting.get(seeker);
    if (wait === undefined) return false;
    this.#waiting.delete(seeker);
    this.#waitingBytes -= wait.bytes;
    const line = this.#lines.get(seeker.address);
    if (line === undefined) return true;
    line.seekers.delete(seeker);
    line.bytes -= wait.bytes;
    if (line.seekers.size === 0) this.#lines.delete(seeker.address);
    return true;
  }

  /** Ends all waiting: every seeker is told that there is no place. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const seeker of [...this.#waiting.keys()]) {
      this.leave(seeker);
      seeker.onNoPlace();
    }
  }

  #mayWait({ seekers, bytes: held }: Line, bytes: number): boolean {
    const { max, bytesMax } = this.#bounds;
    const freeBytes = bytesMax - this.#waitingBytes;
    if (bytes > freeBytes) return false;
    return this.#mayHold(seekers.size, max - this.#waiting.size) && this.#mayHold(held, freeBytes);
  }

  #serve(): void {
    // A place that is released while another is handed over is handled by the round in progress.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      // An address that moved to the end is visited again in this round, but only after it took a place, so the round ends.
      for (const [address, line] of this.#lines) {
        if (this.#taken >= this.#max) return;
        const [seeker] = line.seekers;
        if (seeker === undefined || !this.tryTake(address)) continue;
        this.leave(seeker);
        if (line.seekers.size > 0) {
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
    for (const [seeker, { sinceMs }] of this.#waiting) {
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
