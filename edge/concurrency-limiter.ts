/*
 * Concurrency slots of a component with limited capacity, such as the app: assigns free slots, and limits the time that other requests
 * wait.
 *
 * Slots are shared by client address, because otherwise one address could hold all of them indefinitely. The slots of an address are
 * limited to a multiple of the free slots. So a single address gets `share` of all slots, an address gets fewer slots the more the others
 * hold, and an address without slots finds a free one unless very many addresses hold slots. Fixed shares would be worse: large shares let
 * a few addresses take everything, and small shares leave slots unused while few addresses are active.
 */

/** A request that waits for a slot. The limiter calls `onAcquired` or `onTimeout`, exactly once. */
export interface Waiter {
  /** Client address to which the slot is attributed. Requests from one address are queued in order. */
  readonly address: string;
  /** Bytes that the waiter keeps in memory. The limiter reads this only if the waiter has to wait. */
  readonly bytes: number;
  onAcquired(): void;
  /** Called if no slot became free in time, or before `acquire` returns if too many requests are already waiting. */
  onTimeout(): void;
}

export interface ConcurrencyLimiterOptions {
  readonly max: number;
  /**
   * Fraction of all slots that one address may use while no other address uses any; above 0 and up to 1. With 1, addresses are ignored. A
   * `FixedShare` sets numbers that do not depend on the slots of other addresses.
   */
  readonly share: number | FixedShare;
  /** Maximum wait, in ms. */
  readonly waitMs: number;
  /**
   * Maximum number of waiters, and maximum bytes that they keep in memory. A single address may use `share` of both. Default: no waiting.
   */
  readonly waiting?: { readonly max: number; readonly bytesMax: number };
}

/** Fixed maximum of slots and waiters for one address. The total number of waiters is not limited. */
export interface FixedShare {
  readonly slots: number;
  readonly waiters: number;
}

interface Line {
  /** Waiters of the address, oldest first. */
  readonly seekers: Set<Waiter>;
  bytes: number;
}

interface Wait {
  readonly sinceMs: number;
  readonly bytes: number;
}

/** Returns whether an address that uses `held` slots may have another one, with `free` slots free in total. */
export type MayAcquire = (held: number, free: number) => boolean;

/** Returns the function that limits a single address to `share` of all slots, as in `ConcurrencyLimiterOptions`. */
export function sharedBy(share: number): MayAcquire {
  const ratio = share / (1 - share);
  return (held, free) => free > 0 && held < ratio * free;
}

const UNLIMITED = { max: Number.POSITIVE_INFINITY, bytesMax: Number.POSITIVE_INFINITY };

export class ConcurrencyLimiter {
  readonly #max: number;
  readonly #mayAcquire: MayAcquire;
  /** Limits the number of waiters, and the bytes that they keep in memory. */
  readonly #mayQueue: MayAcquire;
  readonly #waitMs: number;
  #taken = 0;
  #isServing = false;
  /** Number of slots per address, for addresses with at least one slot. */
  readonly #held = new Map<string, number>();
  /** Queues by address, served round-robin: an address that has received a slot moves to the end. */
  readonly #lines = new Map<string, Line>();
  /** All waiters, oldest first. */
  readonly #waiting = new Map<Waiter, Wait>();
  readonly #bounds: { readonly max: number; readonly bytesMax: number };
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ max, share, waitMs, waiting = { max: 0, bytesMax: 0 } }: ConcurrencyLimiterOptions) {
    const isFixed = typeof share !== "number";
    this.#bounds = isFixed ? UNLIMITED : waiting;
    this.#max = max;
    this.#mayAcquire = isFixed ? (held, free) => free > 0 && held < share.slots : sharedBy(share);
    this.#mayQueue = isFixed ? (held) => held < share.waiters : this.#mayAcquire;
    this.#waitMs = waitMs;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a slot now. Returns false if none is available to this address; does not wait. */
  tryAcquire(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (!this.#mayAcquire(held, this.#max - this.#taken)) return false;
    this.#taken += 1;
    this.#held.set(address, held + 1);
    return true;
  }

  /** Takes a slot now and calls `onAcquired` before it returns, or queues the waiter, or calls `onTimeout`. */
  acquire(waiter: Waiter): void {
    const { address } = waiter;
    // Keeps the order of requests from one address: a new request does not overtake a waiter.
    if (!this.#lines.has(address) && this.tryAcquire(address)) {
      waiter.onAcquired();
      return;
    }
    const { bytes } = waiter;
    const line = this.#lines.get(address) ?? { seekers: new Set(), bytes: 0 };
    if (!this.#mayWait(line, bytes)) {
      waiter.onTimeout();
      return;
    }
    line.seekers.add(waiter);
    line.bytes += bytes;
    this.#lines.set(address, line);
    this.#waiting.set(waiter, { sinceMs: performance.now(), bytes });
    this.#waitingBytes += bytes;
    this.#timer ??= setTimeout(this.#giveUpLate, this.#waitMs);
  }

  /** Releases a slot of `address` and assigns it to the next waiter that is allowed to have it. */
  release(address: string): void {
    this.#taken -= 1;
    const held = this.#held.get(address) ?? 0;
    if (held > 1) this.#held.set(address, held - 1);
    else this.#held.delete(address);
    if (this.#waiting.size > 0) this.#serve();
  }

  /** Removes a waiter from the queue; none of its callbacks is called afterwards. Returns false if it was not waiting. */
  cancel(waiter: Waiter): boolean {
    const wait = this.#waiting.get(waiter);
    if (wait === undefined) return false;
    this.#waiting.delete(waiter);
    this.#waitingBytes -= wait.bytes;
    if (this.#waiting.size === 0) this.#stopTimer();
    const line = this.#lines.get(waiter.address);
    if (line === undefined) return true;
    line.seekers.delete(waiter);
    line.bytes -= wait.bytes;
    if (line.seekers.size === 0) this.#lines.delete(waiter.address);
    return true;
  }

  /** Ends all waiting by calling every waiter's `onTimeout`. */
  close(): void {
    this.#stopTimer();
    for (const waiter of [...this.#waiting.keys()]) {
      this.cancel(waiter);
      waiter.onTimeout();
    }
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #mayWait({ seekers, bytes: held }: Line, bytes: number): boolean {
    const { max, bytesMax } = this.#bounds;
    const freeBytes = bytesMax - this.#waitingBytes;
    if (bytes > freeBytes) return false;
    return this.#mayQueue(seekers.size, max - this.#waiting.size) && this.#mayQueue(held, freeBytes);
  }

  #serve(): void {
    // If a slot is released in the meantime, the loop that is already running assigns it.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      // The loop visits an address again after that address took a slot and moved to the end. It still ends, because only an address that
      // took a slot is visited again.
      for (const [address, line] of this.#lines) {
        if (this.#taken >= this.#max) return;
        const [waiter] = line.seekers;
        if (waiter === undefined || !this.tryAcquire(address)) continue;
        this.cancel(waiter);
        if (line.seekers.size > 0) {
          this.#lines.delete(address);
          this.#lines.set(address, line);
        }
        waiter.onAcquired();
      }
    } finally {
      this.#isServing = false;
    }
  }

  readonly #giveUpLate = (): void => {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const [waiter, { sinceMs }] of this.#waiting) {
      const remainingMs = sinceMs + this.#waitMs - nowMs;
      if (remainingMs > 0) {
        this.#timer = setTimeout(this.#giveUpLate, Math.ceil(remainingMs));
        return;
      }
      this.cancel(waiter);
      waiter.onTimeout();
    }
  };
}
