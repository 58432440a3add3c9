import { PublicError } from "../core/errors.ts";

/** Limits on concurrent work in this process. A workspace gets a share of the slots, so that its slow work leaves some to the others. */
export interface WorkspaceLimits {
  readonly total: number;
  readonly perWorkspace: number;
  /** Maximum number of waiters per workspace. */
  readonly waitersMax: number;
  readonly waitMsMax: number;
  /** Error message when at capacity: "Too many usage queries are running". */
  readonly busy: string;
}

/** Releases the slot. A second call has no effect. */
export type Release = () => void;

interface Waiter {
  readonly start: () => void;
}

/** Concurrency slots of this process for one kind of work. Workspaces with waiters are served in rotation, however many waiters one has. */
export class WorkspaceLimiter {
  readonly #limits: WorkspaceLimits;
  readonly #running = new Map<string, number>();
  #total = 0;
  /** In the order in which workspaces get a slot: a workspace that gets one moves to the end. */
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(limits: WorkspaceLimits) {
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
   * Waits for a slot.
   * @throws PublicError 503 `server_busy` if no slot becomes free in time, or if the workspace already has too many waiters; the signal's
   * reason if it is aborted while waiting.
   */
  async acquire(workspaceId: string, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    if (!this.#hasCapacity(workspaceId)) await this.#wait(workspaceId, signal);
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
    const refusal = () => new PublicError("server_busy", `${busy}. Try again.`, { retryAfterS: RETRY_AFTER_S });
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

  /** A workspace that uses its full share does not block the others. */
  #startNext(): void {
    for (const [workspaceId, waiters] of this.#waiting) {
      if (!this.#hasCapacity(workspaceId)) continue;
      this.#waiting.delete(workspaceId);
      this.#waiting.set(workspaceId, waiters);
      const [first] = waiters;
      first?.start();
      return;
    }
  }

  #hasCapacity(workspaceId: string): boolean {
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

const RETRY_AFTER_S = 5;
