import { type BackoffOptions, backoffMs } from "./backoff.ts";

/*
 * The states of a key:
 *
 *   unknown   add → ready; addAfter → waiting
 *   waiting   a timer runs; it fires, or add → ready; addAfter keeps the earlier of the two times
 *   ready     stands in line, once; its turn, while not paused and a worker is free → running
 *   running   one worker is on it; add only marks it "again", so that it never has two workers;
 *             done: "again" → ready; asked to look again later → waiting; else → unknown
 *             failed: → waiting, longer with each failure in a row; "again" shortens nothing, because what made the
 *             mark may be the failing work itself
 *
 * A paused queue goes on taking keys, so that a follower that becomes the leader knows what there is to do.
 */

export interface WorkResult {
  /** Look again then; left out, the key rests until it is added. */
  readonly requeueAfterMs?: number | undefined;
}

export interface QueueOptions {
  /** Throwing means: try again, after the backoff. */
  readonly work: (key: string) => Promise<WorkResult>;
  readonly concurrency: number;
  readonly backoff: BackoffOptions;
  /** Told of each failure, with the number of failures in a row and when the next attempt is. */
  readonly onFailure: (failure: { key: string; error: unknown; failures: number; retryAfterMs: number }) => void;
  readonly paused?: boolean;
}

export interface WorkQueue {
  add(key: string): void;
  addAfter(key: string, delayMs: number): void;
  pause(): void;
  resume(): void;
  /** Keys that stand in line or are worked on; those that wait for a time do not count. */
  readonly depth: number;
  /** Starts nothing more and resolves when what runs has ended. */
  close(): Promise<void>;
}

interface Waiting {
  readonly timer: NodeJS.Timeout;
  readonly dueAt: number;
}

/** A queue that holds each key once, gives each key one worker at a time, and retries with backoff. */
export function createQueue(options: QueueOptions): WorkQueue {
  const ready = new Set<string>();
  const running = new Map<string, { again: boolean }>();
  const waiting = new Map<string, Waiting>();
  const failures = new Map<string, number>();
  let paused = options.paused ?? false;
  let closed = false;
  let onIdle: (() => void) | undefined;

  const stopWaiting = (key: string) => {
    clearTimeout(waiting.get(key)?.timer);
    waiting.delete(key);
  };

  const add = (key: string) => {
    if (closed) return;
    const current = running.get(key);
    if (current !== undefined) {
      current.again = true;
      return;
    }
    stopWaiting(key);
    ready.add(key);
    startWorkers();
  };

  const addAfter = (key: string, delayMs: number) => {
    if (closed) return;
    if (delayMs <= 0) return add(key);
    if (ready.has(key)) return;
    const dueAt = performance.now() + delayMs;
    const before = waiting.get(key);
    if (before !== undefined && before.dueAt <= dueAt) return;
    stopWaiting(key);
    waiting.set(key, { dueAt, timer: setTimeout(() => add(key), delayMs) });
  };

  function startWorkers() {
    while (!paused && !closed && running.size < options.concurrency) {
      const [key] = ready;
      if (key === undefined) return;
      ready.delete(key);
      const state = { again: false };
      running.set(key, state);
      void runOnce(key, state);
    }
  }

  async function runOnce(key: string, state: { again: boolean }) {
    let after: () => void;
    try {
      const { requeueAfterMs } = await options.work(key);
      failures.delete(key);
      after = () => {
        if (state.again) add(key);
        else if (requeueAfterMs !== undefined) addAfter(key, requeueAfterMs);
      };
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const retryAfterMs = backoffMs(count, options.backoff);
      options.onFailure({ key, error, failures: count, retryAfterMs });
      after = () => addAfter(key, retryAfterMs);
    }
    running.delete(key);
    after();
    startWorkers();
    if (running.size === 0) onIdle?.();
  }

  return {
    add,
    addAfter,
    pause: () => {
      paused = true;
    },
    resume: () => {
      paused = false;
      startWorkers();
    },
    get depth() {
      return ready.size + running.size;
    },
    close: async () => {
      closed = true;
      ready.clear();
      for (const key of [...waiting.keys()]) stopWaiting(key);
      if (running.size > 0) await new Promise<void>((resolve) => (onIdle = resolve));
    },
  };
}
