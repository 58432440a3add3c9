import type { Logger } from "pino";
import { jitterMs } from "../../core/backoff.ts";
import { formatKey, type ObjectKey, parseKey } from "./object-key.ts";
import { createQueue, type WorkQueue, type WorkResult } from "./queue.ts";

export interface ControllerOptions {
  /** The kind's name, for logs and metrics. */
  readonly name: string;
  readonly reconcile: (key: ObjectKey) => Promise<WorkResult>;
  /** Every object is reconciled again after this time (minus a random tenth), even without an event. */
  readonly resyncMs: number;
  readonly concurrency?: number;
  readonly log: Logger;
  readonly observe?: (outcome: { name: string; result: "success" | "error"; durationMs: number }) => void;
}

export interface Controller {
  add(key: ObjectKey): void;
  pause(): void;
  resume(): void;
  readonly depth: number;
  close(): Promise<void>;
}

const RETRY = { firstMs: 250, maxMs: 60_000, random: Math.random };

/** Runs `reconcile` for the keys that are added: level-triggered, one worker per key, with backoff and periodic resync. */
export function startController(options: ControllerOptions): Controller {
  const { name, reconcile, resyncMs, concurrency = 4, log, observe } = options;
  const work = async (text: string): Promise<WorkResult> => {
    const startedAt = performance.now();
    let result: "success" | "error" = "error";
    try {
      const { requeueAfterMs } = await reconcile(parseKey(text));
      result = "success";
      return {
        requeueAfterMs: Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, jitterMs(resyncMs, 0.1, Math.random)),
      };
    } finally {
      observe?.({ name, result, durationMs: performance.now() - startedAt });
    }
  };
  const queue: WorkQueue = createQueue({
    work,
    concurrency,
    backoff: RETRY,
    paused: true,
    onFailure: ({ key, error, failures, retryAfterMs }) =>
      log.warn({ kind: name, object: key, err: error, failures, retryAfterMs }, "reconcile failed; retrying"),
  });
  return {
    add: (key) => queue.add(formatKey(key)),
    pause: queue.pause,
    resume: queue.resume,
    get depth() {
      return queue.depth;
    },
    close: queue.close,
  };
}
