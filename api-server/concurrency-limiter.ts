import { PublicError } from "../core/errors.ts";

/** What runs at once in this process. A workspace gets a part of the slots, so that its slow work leaves some to the others. */
export interface ConcurrencyLimits {
  readonly total: number;
  readonly perWorkspace: number;
  /** How many of a workspace wait. */
  readonly waitersMax: number;
  readonly waitMsMax: number;
  /** Says in the error what there is too much of: "Too many usage queries are running". */
  readonly busy: string;
}

/** Frees the slot. A second call changes nothing. */
export type Release = () => void;

interface Waiter {
  readonly start: () => void;
}

/** The slots of this process for one kind of work. Workspaces that wait take turns, however many waiters one of them has. */
export class ConcurrencyLimiter {
  readonly #limits: ConcurrencyLimits;
  readonly #running = new Map<string, number>();
  #total = 0;
  /** In the order in which the workspaces get a slot: one that got a slot goes to the end. */
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits;
  }

  /** Runs `work` in a slot. Throws as `acquire` does. */
  async run<T>(workspaceId: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const release = await this.acquire(workspaceId, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /**
   * @throws PublicError 503 `server_busy` when no slot becomes free in time, or too many of the workspace wait already; the signal's
   * reason when it is aborted before.
   */
  async acquire(workspaceId: string, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    if (!this.#hasRoom(workspaceId)) await this.#wait(workspaceId, signal);
    else this.#count(workspaceId, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count(workspaceId, -1);
      this.#startNext();
    };
  }

  #wait(workspaceId: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitersMax, waitMsMax, busy } = this.#limits;
    const waiters = this.#waiting.get(workspaceId) ?? new Set();
    const refusal = () => new PublicError("server_busy", `${busy}. Try again.`, { headers: RETRY_AFTER });
    if (waiters.size >= waitersMax) return Promise.reject(refusal());
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
        waiters.delete(waiter);
        if (waiters.size === 0) this.#waiting.delete(workspaceId);
      };
      const fail = (error: unknown) => {
        leave();
        reject(error);
      };
      const waiter: Waiter = {
        start: () => {
          leave();
          this.#count(workspaceId, 1);
          resolve();
        },
      };
      const aborted = () => fail(signal?.reason);
      const timer = setTimeout(() => fail(refusal()), waitMsMax);
      signal?.addEventListener("abort", aborted, { once: true });
      this.#waiting.set(workspaceId, waiters.add(waiter));
    });
  }

  /** A workspace that has its part already does not hold up the others. */
  #startNext(): void {
    for (const [workspaceId, waiters] of this.#waiting) {
      if (!this.#hasRoom(workspaceId)) continue;
      this.#waiting.delete(workspaceId);
      this.#waiting.set(workspaceId, waiters);
      const [first] = waiters;
      first?.start();
      return;
    }
  }

  #hasRoom(workspaceId: string): boolean {
    const { total, perWorkspace } = this.#limits;
    return this.#total < total && (this.#running.get(workspaceId) ?? 0) < perWorkspace;
  }

  #count(workspaceId: string, change: 1 | -1): void {
    const count = (this.#running.get(workspaceId) ?? 0) + change;
    if (count === 0) this.#running.delete(workspaceId);
    else this.#running.set(workspaceId, count);
    this.#total += change;
  }
}

const RETRY_AFTER = { "Retry-After": "5" };
