import { performance } from "node:perf_hooks";
import type { FastifyInstance } from "fastify";
import { Counter, Gauge, type Metric, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import type { ConnectionLimit, LimitAction } from "./limit-connections.ts";

export const REQUEST_METRICS = defineMetrics({
  v1Served: {
    name: "postern_api_v1_enabled",
    type: "gauge",
    help: "1 while v1 of the API is enabled",
    unit: "1 or 0",
    bad: "",
  },
  requests: {
    name: "postern_api_requests_total",
    type: "counter",
    help: "API requests by procedure and status",
    unit: "requests",
    labels: {
      procedure: "the path of a procedure, such as `/v2/keys.verifyKey`; `unknown` for every other path",
      status: "the HTTP status, such as `200`",
    },
    bad: "5xx (PosternApiErrors). 401 or 403: a root key was revoked or lacks a permission. 429: a caller reached its quota.",
  },
  duration: {
    name: "postern_api_request_duration_seconds",
    type: "histogram",
    help: "Duration of API requests",
    unit: "seconds",
    labels: { procedure: "as above" },
    bad: "p99 of `/v2/keys.verifyKey` above 0.05: slow or distant Redis, or too little CPU. Lists: Postgres.",
  },
  connections: {
    name: "postern_api_connections",
    type: "gauge",
    help: "Open client connections on the API port",
    unit: "connections",
    bad: "Near `--max-connections`: see the next metric.",
  },
  connectionLimit: {
    name: "postern_api_connection_limit_total",
    type: "counter",
    help: "Connections opened at the limit: an idle connection was evicted for the new one, or the new one was rejected",
    unit: "connections",
    labels: { action: ["evicted", "rejected"] satisfies LimitAction[] },
    bad: "`rejected` rising: add api-servers, or raise `--max-connections` and the memory limit. Only `evicted` rising: clients keep idle connections.",
  },
});

/** Upper bounds of the latency buckets, ms. */
const BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000] as const;

interface ProcedureStats {
  readonly byStatus: Map<number, number>;
  /** Number of requests per bucket (not cumulative). The last bucket has no upper bound. */
  readonly buckets: number[];
  sumMs: number;
}

/**
 * Counts responses. The only labels are the procedure and the status. Keys, workspaces and paths from clients must not be labels, because
 * their number is unlimited.
 */
export interface RequestMetrics {
  /** Counts a response. `startedMs` is a value of `performance.now()`. */
  observe(procedure: string, status: number, startedMs: number): void;
}

/** Returns a callback to call for each connection that exceeds the limit. */
export function registerConnectionMetrics(
  registry: Registry,
  limit: () => ConnectionLimit,
): (action: LimitAction) => void {
  new Gauge({
    ...exported(REQUEST_METRICS.connections),
    registers: [registry],
    collect() {
      this.set(limit().open());
    },
  });
  const reached = new Counter({ ...exported(REQUEST_METRICS.connectionLimit), registers: [registry] });
  for (const action of ["evicted", "rejected"]) reached.inc({ action }, 0);
  return (action) => reached.inc({ action });
}

/**
 * Counts requests in plain numbers, which the registry reads at scrape time. The registry's own counters would build a label key on each
 * call, which would be a large part of the cost of a verification.
 */
export function registerMetrics(
  app: FastifyInstance,
  registry: Registry,
  { isV1Served, isExposed }: { isV1Served: boolean; isExposed: boolean },
): RequestMetrics {
  const stats = new Map<string, ProcedureStats>();

  new Gauge({ ...exported(REQUEST_METRICS.v1Served), registers: [registry] }).set(isV1Served ? 1 : 0);

  new Counter({
    ...exported(REQUEST_METRICS.requests),
    registers: [registry],
    collect() {
      this.reset();
      for (const [procedure, { byStatus }] of stats) {
        for (const [status, count] of byStatus) this.inc({ procedure, status }, count);
      }
    },
  });
  // Exports the histogram without the library's class, because that class can only record single observations.
  const { name, help } = REQUEST_METRICS.duration;
  registry.registerMetric({
    name,
    get: async () => ({ name, help, type: "histogram", aggregator: "sum", values: durationValues(name, stats) }),
    reset() {},
  } as unknown as Metric);

  if (isExposed) {
    app.get("/metrics", async (_request, reply) => {
      reply.type(registry.contentType);
      return registry.metrics();
    });
  }

  return {
    observe: (procedure, status, startedMs) => {
      let own = stats.get(procedure);
      if (own === undefined) {
        own = { byStatus: new Map(), buckets: new Array(BUCKETS_MS.length + 1).fill(0), sumMs: 0 };
        stats.set(procedure, own);
      }
      const tookMs = performance.now() - startedMs;
      own.byStatus.set(status, (own.byStatus.get(status) ?? 0) + 1);
      own.sumMs += tookMs;
      let index = 0;
      while (index < BUCKETS_MS.length && tookMs > (BUCKETS_MS[index] ?? 0)) index += 1;
      own.buckets[index] = (own.buckets[index] ?? 0) + 1;
    },
  };
}

/** Returns the series of the histogram. */
function durationValues(name: string, stats: ReadonlyMap<string, ProcedureStats>) {
  return [...stats].flatMap(([procedure, { buckets, sumMs }]) => {
    let count = 0;
    const within = buckets.map((inBucket, index) => {
      count += inBucket;
      const boundMs = BUCKETS_MS[index];
      const le = boundMs === undefined ? "+Inf" : String(boundMs / 1000);
      return { metricName: `${name}_bucket`, labels: { procedure, le }, value: count };
    });
    const sum = { metricName: `${name}_sum`, labels: { procedure }, value: sumMs / 1000 };
    return [...within, sum, { metricName: `${name}_count`, labels: { procedure }, value: count }];
  });
}
