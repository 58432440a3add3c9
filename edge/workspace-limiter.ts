import { PublicError } from "../core/errors.ts";
import { ConcurrencyLimiter, type Waiter } from "./concurrency-limiter.ts";

/**
 * Limits concurrent work in this process. Each workspace can use only a share of the slots, so that slow work of one workspace does not
 * block the others.
 */
export interface WorkspaceLimits {
  readonly total: number;
  readonly perWorkspace: number;
  /** Maximum number of waiters per workspace. */
  readonly waitersMax: number;
  readonly waitMsMax: number;
  /** Error message at the limit, such as "Too many usage queries are running". */
  readonly busy: string;
}

/** Releases the slot. A second call has no effect. */
export type Release = () => void;

/**
 * Concurrency slots of this process for one kind of work. Workspaces with waiters are served in rotation, regardless of how many waiters
 * each has.
 */
export class WorkspaceLimiter {
  readonly #busy: string;
  readonly #limiter: ConcurrencyLimiter;

  constructor({ total, perWorkspace, waitersMax, waitMsMax, busy }: WorkspaceLimits) {
    this.#busy = busy;
    const share = { slots: perWorkspace, waiters: waitersMax };
    this.#limiter = new ConcurrencyLimiter({ max: total, share, waitMs: waitMsMax });
  }

  /** Runs `work` in a slot. Throws the same errors as `acquire`. */
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
    await this.#acquired(workspaceId, signal);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#limiter.release(workspaceId);
    };
  }

  #acquired(address: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const settled = (settle: () => void) => () => {
        signal?.removeEventListener("abort", onAbort);
        settle();
      };
      const waiter: Waiter = {
        address,
        bytes: 0,
        onAcquired: settled(resolve),
        onTimeout: settled(() =>
          reject(new PublicError("server_busy", `${this.#busy}. Try again.`, { retryAfterS: RETRY_AFTER_S })),
        ),
      };
      const onAbort = () => {
        this.#limiter.cancel(waiter);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#limiter.acquire(waiter);
    });
  }
}

const RETRY_AFTER_S = 5;
