import type { Logger } from "pino";
import { jitterMs } from "../../core/backoff.ts";
import type { LeaderWork } from "./leader.ts";
import { formatKey, type ObjectKey, parseKey } from "./object-key.ts";
import { createQueue, type WorkQueue, type WorkResult } from "./queue.ts";

export interface ControllerOptions {
  /** Name of the kind, for logs and metrics. */
  readonly name: string;
  readonly reconcile: (key: ObjectKey) => Promise<WorkResult>;
  /** Interval at which every object is reconciled even without an event. It is shortened by up to 10 %, at random. */
  readonly resyncMs: number;
  readonly concurrency?: number;
  readonly log: Logger;
  readonly observe?: (outcome: ReconcileOutcome) => void;
  /** Called when the reconcile of an object starts, with its time in the queue. */
  readonly observeWait?: (wait: { readonly name: string; readonly waitedMs: number }) => void;
}

export interface ReconcileOutcome {
  readonly name: string;
  /** Result of the reconcile; an object with an `error` is retried. */
  readonly result: "success" | "error";
  readonly durationMs: number;
}

export interface Controller extends LeaderWork {
  add(key: ObjectKey): void;
  readonly depth: number;
}

export const CONCURRENCY = 4;
const RETRY = { firstMs: 250, maxMs: 60_000, random: Math.random };

/**
 * Starts a controller, which runs `reconcile` for added keys. It is level-triggered, with at most one worker per key, backoff and periodic
 * resync.
 */
export function startController(options: ControllerOptions): Controller {
  const { name, reconcile, resyncMs, concurrency = CONCURRENCY, log, observe, observeWait } = options;
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
  const due = createLogThrottle();
  const queue: WorkQueue = createQueue({
    work,
    concurrency,
    backoff: RETRY,
    paused: true,
    onStart: ({ waitedMs }) => observeWait?.({ name, waitedMs }),
    onFailure: ({ key, error, failures, retryAfterMs }) => {
      const suppressed = due(error instanceof Error ? error.message : String(error));
      if (suppressed === undefined) return;
      const more = suppressed === 0 ? {} : { suppressed };
      log.warn({ kind: name, object: key, err: error, failures, retryAfterMs, ...more }, "reconcile failed; retrying");
    },
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

const LOG_EVERY_MS = 60_000;
const MESSAGES_MAX = 100;

/**
 * Returns a function that decides whether a failure with this message is logged. The first one is. Later ones are logged at most once a
 * minute, with the number of those suppressed. Otherwise a failure that affects every object, such as a rejected root key, would flood the
 * log.
 */
function createLogThrottle(): (message: string) => number | undefined {
  const logged = new Map<string, { atMs: number; suppressed: number }>();
  return (message) => {
    const nowMs = performance.now();
    const known = logged.get(message);
    if (known !== undefined && nowMs - known.atMs < LOG_EVERY_MS) {
      known.suppressed += 1;
      return undefined;
    }
    logged.delete(message);
    logged.set(message, { atMs: nowMs, suppressed: 0 });
    const [oldest] = logged.keys();
    if (logged.size > MESSAGES_MAX && oldest !== undefined) logged.delete(oldest);
    return known?.suppressed ?? 0;
  };
}
