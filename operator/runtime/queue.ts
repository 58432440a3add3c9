import { type Backoff, backoffMs } from "../../core/backoff.ts";
import { parseKey } from "./object-key.ts";

/*
 * The states of a key:
 *
 *   unknown   add → ready; addAfter → waiting
 *   waiting   a timer runs; when it fires, or after add → ready; addAfter keeps the earlier of the two times
 *   ready     the key is in the queue once; when a worker is free and the queue is not paused → running. Namespaces alternate, so
 *             that 10,000 objects of one namespace do not delay the objects of another
 *   running   one worker processes the key; add only marks the key as "again", so that it never has two workers
 *             success: "again" → ready; `requeueAfterMs` → waiting; otherwise → unknown
 *             failure: → waiting, longer after each consecutive failure; "again" does not shorten the delay, because the
 *             failing work itself may have added the key
 *
 * A paused queue still accepts keys, so that a follower that becomes the leader has all keys to process.
 */

export interface WorkResult {
  /** Delay until the key is processed again. If `undefined`, the key is processed again only after it was added again. */
  readonly requeueAfterMs?: number | undefined;
}

export interface QueueOptions {
  /** Processes a key. If it throws, the key is retried with backoff. */
  readonly work: (key: string) => Promise<WorkResult>;
  readonly concurrency: number;
  readonly backoff: Backoff;
  /** Called for each failure, with the number of consecutive failures and the delay until the next attempt. */
  readonly onFailure: (failure: { key: string; error: unknown; failures: number; retryAfterMs: number }) => void;
  /** Called when the processing of a key starts, with its time in the queue. */
  readonly onStart?: ((start: { key: string; waitedMs: number }) => void) | undefined;
  readonly paused?: boolean;
}

export interface WorkQueue {
  add(key: string): void;
  addAfter(key: string, delayMs: number): void;
  pause(): void;
  resume(): void;
  /** Number of keys that are ready or running, excluding keys that wait for a delay. */
  readonly depth: number;
  /** Starts no more work, and resolves when running work has ended. */
  close(): Promise<void>;
}

interface Waiting {
  readonly timer: NodeJS.Timeout;
  readonly dueAt: number;
}

/** Creates a queue. It contains each key once, processes a key in only one worker at a time, and retries with backoff. */
export function createQueue(options: QueueOptions): WorkQueue {
  const ready = createReadyKeys();
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
      const next = ready.take();
      if (next === undefined) return;
      const { key, since } = next;
      options.onStart?.({ key, waitedMs: performance.now() - since });
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

/** Creates a collection of ready keys. `take` alternates between namespaces, and takes the oldest key of a namespace first. */
function createReadyKeys() {
  /** Time at which each key became ready, by namespace. `take` continues with the first namespace. */
  const namespaces = new Map<string, Map<string, number>>();
  let size = 0;
  const namespaceOf = (key: string) => parseKey(key).namespace;

  return {
    get size() {
      return size;
    },
    has: (key: string) => namespaces.get(namespaceOf(key))?.has(key) ?? false,
    add: (key: string) => {
      const namespace = namespaceOf(key);
      const keys = namespaces.get(namespace) ?? new Map<string, number>();
      if (keys.has(key)) return;
      namespaces.set(namespace, keys.set(key, performance.now()));
      size++;
    },
    take: () => {
      const [next] = namespaces;
      const [first] = next?.[1] ?? [];
      if (next === undefined || first === undefined) return undefined;
      const [namespace, keys] = next;
      const [key, since] = first;
      keys.delete(key);
      namespaces.delete(namespace);
      if (keys.size > 0) namespaces.set(namespace, keys);
      size--;
      return { key, since };
    },
    clear: () => {
      namespaces.clear();
      size = 0;
    },
  };
}
