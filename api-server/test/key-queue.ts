import { Registry } from "prom-client";
import { createLoopFailures } from "../background/loop.ts";
import { createFairScheduler } from "../background/workspace-turns.ts";
import type { Deps } from "../deps.ts";
import { KeyQueue } from "../domain/keys/key-queue.ts";

/** Runs the background work of `migrations.enqueueKeys` when the test calls it. */
export interface TestKeyQueue {
  readonly queue: KeyQueue;
  /** Runs batches until no key is due. */
  work(): Promise<void>;
  /** Returns the value of a metric by its exported name and labels, or 0 if it is missing. */
  metric(series: string): Promise<number>;
}

export function openKeyQueue(deps: Deps): TestKeyQueue {
  const metrics = new Registry();
  const runFairly = createFairScheduler({ loop: "key-queue", log: deps.log, failures: createLoopFailures(metrics) });
  const queue = new KeyQueue({ deps, runFairly, metrics });
  return {
    queue,
    work: async () => {
      while (await queue.round());
    },
    metric: async (series) => {
      const lines = (await metrics.metrics()).split("\n");
      const line = lines.find((one) => one.startsWith(`${series} `));
      return line === undefined ? 0 : Number(line.slice(series.length + 1));
    },
  };
}
