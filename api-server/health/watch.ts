import { performance } from "node:perf_hooks";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { AnalyticsStore } from "../../analytics/contract.ts";
import { defineMetrics, exported } from "../../core/metric.ts";
import type { Closeable } from "../../edge/closeable.ts";
import type { Edge } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { within } from "../../edge/redis/script.ts";
import type { DatabaseUrl } from "../../postgres/pool.ts";
import { createPool } from "../../postgres/pool.ts";
import { checkHealth, DEGRADATIONS, type DegradationReason, type Health, type Observation, REASONS } from "./health.ts";

const POLL_INTERVAL_MS = 1000;
const RESPONSE_MS_MAX = 2000;
/**
 * Number of consecutive failed checks before a degradation is logged, so that the log reports neither a short restart nor the time before
 * the first heartbeat.
 */
const LOGGED_AFTER_POLLS = 3;
/**
 * Number of health checks after which the eviction policy and the number of connections of Redis are read again. Only an administrator
 * changes the policy.
 */
const STORE_INFO_EVERY_POLLS = 10;
const DROPPED_LATELY_MS = 60_000;

export interface HealthWatch extends Closeable {
  /** Returns the result of the last check, so probes get an immediate response even if Postgres or Redis is slow. */
  current(): Health;
}

/**
 * Checks health once a second. A degradation is exported immediately, logged after a few consecutive checks, and logged again when it ends.
 * The returned promise resolves after the first check.
 */
export async function watchHealth(parts: {
  databaseUrl: DatabaseUrl;
  edge: Edge;
  projection: Pick<Projection, "streamStaleness" | "stalenessMs">;
  analytics: Pick<AnalyticsStore, "findProblem">;
  log: Logger;
  metrics: Registry;
}): Promise<HealthWatch> {
  const { edge, projection, analytics, log, metrics } = parts;
  // The checks use a separate connection, because a pool whose connections are all in use must not look like an unreachable Postgres.
  const db = createPool(parts.databaseUrl, {
    connectionsMax: 1,
    applicationName: "postern-health",
    connectMsMax: RESPONSE_MS_MAX,
  });
  /** Number of consecutive checks that found each degradation. */
  const lasting = new Map<DegradationReason, number>();
  let health: Health;
  let polls = 0;
  let postgresSeenAt = performance.now();
  let storeEvicts = false;
  let connectionRatio: number | undefined;
  let storeAnswered = false;
  let dropped = edge.sink.dropped();
  let droppedAt = Number.NEGATIVE_INFINITY;

  async function poll(): Promise<Observation> {
    const [postgresAnswers, storeAnswers, clickhouse] = await Promise.all([
      responds(async () => {
        const client = await db.connect();
        try {
          await within(RESPONSE_MS_MAX, client.query("select 1"));
          client.release();
        } catch (error) {
          // Closes the connection, because Postgres does not respond on it, so it would delay the next check as well.
          client.release(true);
          throw error;
        }
      }),
      responds(() => edge.ping()),
      analytics.findProblem?.(),
    ]);
    if (storeAnswers && (!storeAnswered || polls % STORE_INFO_EVERY_POLLS === 0)) {
      // Ignores an error, because the next check reports an unreachable Redis.
      await responds(async () => {
        const info = await within(RESPONSE_MS_MAX, edge.info());
        storeEvicts = (info.evictionPolicy ?? "noeviction") !== "noeviction";
        connectionRatio = info.connectionRatio;
      });
    }
    storeAnswered = storeAnswers;
    polls += 1;
    const nowMs = performance.now();
    if (postgresAnswers) postgresSeenAt = nowMs;
    if (edge.sink.dropped() > dropped) droppedAt = nowMs;
    dropped = edge.sink.dropped();
    return {
      postgresUnavailableMs: postgresAnswers ? 0 : nowMs - postgresSeenAt,
      storeAnswers,
      storeEvicts,
      streamStalenessMs: projection.streamStaleness().ms,
      stalenessMs: projection.stalenessMs(),
      eventsDroppedLately: nowMs - droppedAt < DROPPED_LATELY_MS,
      clickhouse,
    };
  }

  function logChanges(before: Health, now: Health): void {
    for (const reason of REASONS) {
      if (now.degradations.includes(reason)) {
        const polls = (lasting.get(reason) ?? 0) + 1;
        lasting.set(reason, polls);
        if (polls === LOGGED_AFTER_POLLS) log.warn({ degradation: reason }, DEGRADATIONS[reason]);
      } else if ((lasting.get(reason) ?? 0) >= LOGGED_AFTER_POLLS) {
        lasting.delete(reason);
        log.info({ degradation: reason }, "no longer degraded");
      } else lasting.delete(reason);
    }
    if (before.ready && !now.ready) log.error({ degradations: now.degradations }, "not ready");
    if (!before.ready && now.ready) log.info("ready again");
  }

  health = checkHealth(await poll());
  let isClosed = false;
  let timer: NodeJS.Timeout;
  let turn: Promise<void> = Promise.resolve();
  const next = (): void => {
    turn = poll().then((seen) => {
      if (isClosed) return;
      const before = health;
      health = checkHealth(seen);
      logChanges(before, health);
      timer = setTimeout(next, POLL_INTERVAL_MS);
    });
  };
  timer = setTimeout(next, POLL_INTERVAL_MS);
  exportHealth(metrics, { health: () => health, connectionRatio: () => connectionRatio });
  return {
    current: () => health,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await turn;
      await db.end();
    },
  };
}

export const HEALTH_METRICS = defineMetrics({
  degraded: {
    name: "postern_degraded",
    type: "gauge",
    help: "1 while a dependency has failed but this replica still serves, by reason",
    unit: "1 or 0",
    labels: { reason: REASONS },
    bad: "1 (PosternApiDegraded).",
  },
  ready: {
    name: "postern_ready",
    type: "gauge",
    help: "1 while this replica can serve requests",
    unit: "1 or 0",
    bad: "0: Postgres has not responded for 30 s.",
  },
  redisConnections: {
    name: "postern_redis_connection_ratio",
    type: "gauge",
    help: "Connections of the fullest Redis server divided by its maxclients",
    unit: "ratio",
    bad: "Above 0.8 (PosternRedisConnectionsNearLimit).",
  },
});

function exportHealth(
  metrics: Registry,
  { health: current, connectionRatio }: { health: () => Health; connectionRatio: () => number | undefined },
): void {
  new Gauge({
    ...exported(HEALTH_METRICS.degraded),
    registers: [metrics],
    collect() {
      const { degradations } = current();
      for (const reason of REASONS) {
        this.set({ reason }, degradations.includes(reason) ? 1 : 0);
      }
    },
  });
  new Gauge({
    ...exported(HEALTH_METRICS.ready),
    registers: [metrics],
    collect() {
      this.set(current().ready ? 1 : 0);
    },
  });
  new Gauge({
    ...exported(HEALTH_METRICS.redisConnections),
    registers: [metrics],
    collect() {
      this.set(connectionRatio() ?? 0);
    },
  });
}

/** Returns whether the call succeeded. Ignores its error. */
async function responds(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch {
    return false;
  }
}
