import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import type { Closeable } from "../../edge/closeable.ts";

export interface LoopOptions {
  readonly name: string;
  readonly everyMs: number;
  readonly log: Logger;
  readonly failures: Counter<"loop">;
  /** Runs the work once. Returns true if more work is due immediately, or the delay in ms until then; otherwise `everyMs` applies. */
  readonly work: () => Promise<boolean | number | undefined>;
}

export const LOOP_METRICS = defineMetrics({
  failures: {
    name: "postern_background_failures_total",
    type: "counter",
    help: "Failed runs of a background loop",
    unit: "turns",
    labels: {
      loop: [
        "workspaces",
        "credit-loads",
        "credit-write-behind",
        "ingest",
        "events-budget",
        "roll-up",
        "analytics",
        "scripts",
        "retention",
        "key-queue",
        "key-queue-measure",
        "gate-users",
        "root-key",
        "root-key-usage",
        "refill",
        "usage-store",
      ],
    },
    bad: "More than 3 in 15 minutes without an outage (PosternBackgroundLoopFailing).",
  },
});

/** Counts failed background runs by loop name. */
export function createLoopFailures(registry: Registry): Counter<"loop"> {
  return new Counter({ ...exported(LOOP_METRICS.failures), registers: [registry] });
}

/**
 * Runs `work` at an interval until closed. A failed run is counted, logged (only the first of consecutive failures), and retried at the
 * next interval. `close` waits for the current run.
 */
export function startLoop({ name, everyMs, log, failures, work }: LoopOptions): Closeable {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let isFailing = false;
  let turn: Promise<void> = Promise.resolve();

  const run = async (): Promise<void> => {
    let delayMs = everyMs;
    try {
      const next = await work();
      if (next === true) delayMs = 0;
      else if (typeof next === "number") delayMs = next;
      if (isFailing) log.info({ loop: name }, "works again");
      isFailing = false;
    } catch (error) {
      failures.inc({ loop: name });
      if (!isFailing && !isClosed) log.error({ err: error, loop: name }, "failed; retrying");
      isFailing = true;
    }
    if (!isClosed) timer = setTimeout(start, delayMs);
  };
  const start = (): void => {
    turn = run();
  };
  timer = setTimeout(start, everyMs);

  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await turn;
    },
  };
}
