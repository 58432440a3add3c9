import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import { LogThrottle } from "../../edge/log-throttle.ts";
import { within } from "../../edge/redis/script.ts";

/*
 * Runs work for all workspaces in time slices, each with its own error handling and time limit, so that bad data, a flood or an attack in
 * one workspace affects only its own slice. A slice that exceeds its time limit continues in parallel with later rounds, and its workspace
 * gets no other slice until it has ended.
 */

const AT_ONCE = 4;
const TURN_MS_MAX = 2_000;

/**
 * Runs `work` for each workspace. `work` returns true if its workspace has more work. This function returns true if any workspace has more
 * work.
 */
export type RunFairly = (
  workspaceIds: readonly string[],
  work: (workspaceId: string) => Promise<boolean>,
) => Promise<boolean>;

export function createFairScheduler({
  loop,
  log,
  failures,
  turnMsMax = TURN_MS_MAX,
}: {
  loop: string;
  log: Pick<Logger, "error" | "warn" | "info">;
  failures: Counter<"loop">;
  turnMsMax?: number;
}): RunFairly {
  const underWay = new Set<string>();
  const failing = new Set<string>();

  /** Runs one time slice. Never throws, and logs only the first of consecutive failures. */
  async function acquireTurn(workspaceId: string, work: (workspaceId: string) => Promise<boolean>): Promise<boolean> {
    underWay.add(workspaceId);
    try {
      const isMore = await work(workspaceId);
      if (failing.delete(workspaceId)) log.info({ loop, workspaceId }, "works again for a workspace");
      return isMore;
    } catch (error) {
      failures.inc({ loop });
      if (!failing.has(workspaceId)) log.error({ err: error, loop, workspaceId }, "failed for a workspace; retrying");
      failing.add(workspaceId);
      return false;
    } finally {
      underWay.delete(workspaceId);
    }
  }

  return async (workspaceIds, work) => {
    const waiting = workspaceIds.filter((id) => !underWay.has(id));
    let isMore = false;
    const takeTurns = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        const workspaceId = id;
        const turn = within(turnMsMax, acquireTurn(workspaceId, work)).catch(() => {
          log.warn({ loop, workspaceId }, "a workspace takes long; the others continue");
          return false;
        });
        if (await turn) isMore = true;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, takeTurns));
    return isMore;
  };
}

export const REFUSAL_METRICS = defineMetrics({
  refused: {
    name: "postern_store_invalid_values_total",
    type: "counter",
    help: "Invalid values that were removed from the Redis keys of a workspace",
    unit: "values",
    labels: { kind: ["credit-loads", "credit-marks"] },
    bad: "Any increase: a pod of the workspace that the log names may be compromised.",
  },
});

/** Counts invalid values in Redis, and logs them at intervals. Postern never writes such values. */
export type RecordRejected = (workspaceId: string, found: { kind: string; count: number }) => void;

export function createRefusals({ log, registry }: { log: Pick<Logger, "warn">; registry: Registry }): RecordRejected {
  const total = new Counter({
    ...exported(REFUSAL_METRICS.refused),
    registers: [registry],
  });
  const throttle = new LogThrottle();
  return (workspaceId, { kind, count }) => {
    if (count === 0) return;
    total.inc({ kind }, count);
    const times = throttle.note(`${kind} ${workspaceId}`);
    if (times === undefined) return;
    log.warn({ workspaceId, kind, count, times }, "the shared store contained invalid values, which were removed");
  };
}
