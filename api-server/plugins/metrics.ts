import { performance } from "node:perf_hooks";
import type { FastifyInstance } from "fastify";
import { Counter, Gauge, type Registry } from "prom-client";

/** Upper bounds of the latency buckets, ms. */
const BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000] as const;

interface ProcedureStats {
  readonly byStatus: Map<number, number>;
  /** Requests per bucket, not cumulative; the last bucket is for everything slower. */
  readonly buckets: number[];
  sumMs: number;
}

/** Counts answered requests. Labels are the procedure and the status: never a key, a workspace or a path from a stranger. */
export interface RequestMetrics {
  /** `startedMs` is of `performance.now()`. */
  observe(procedure: string, status: number, startedMs: number): void;
}

/**
 * Requests are counted in plain numbers, which the registry reads when it is scraped: the registry's own counters look up
 * their labels by a text that is built on each call, which would be a large part of the cost of a verification.
 */
export function registerMetrics(
  app: FastifyInstance,
  registry: Registry,
  { isV1Served, isExposed }: { isV1Served: boolean; isExposed: boolean },
): RequestMetrics {
  const stats = new Map<string, ProcedureStats>();

  new Gauge({
    name: "postern_api_v1_served",
    help: "0 when v1 is switched off; its calls are those of postern_api_requests_total whose procedure begins with /v1/.",
    registers: [registry],
  }).set(isV1Served ? 1 : 0);

  new Counter({
    name: "postern_api_requests_total",
    help: "Requests answered, by procedure and status.",
    labelNames: ["procedure", "status"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [procedure, { byStatus }] of stats) {
        for (const [status, count] of byStatus) this.inc({ procedure, status }, count);
      }
    },
  });
  // The three series of a histogram, because its class accepts only single observations.
  new Gauge({
    name: "postern_api_request_duration_seconds_bucket",
    help: "Requests answered within `le` seconds, by procedure.",
    labelNames: ["procedure", "le"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [procedure, { buckets }] of stats) {
        let total = 0;
        for (const [index, count] of buckets.entries()) {
          total += count;
          const boundMs = BUCKETS_MS[index];
          this.set({ procedure, le: boundMs === undefined ? "+Inf" : String(boundMs / 1000) }, total);
        }
      }
    },
  });
  new Gauge({
    name: "postern_api_request_duration_seconds_sum",
    help: "Seconds spent on requests, by procedure.",
    labelNames: ["procedure"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [procedure, { sumMs }] of stats) this.set({ procedure }, sumMs / 1000);
    },
  });
  new Gauge({
    name: "postern_api_request_duration_seconds_count",
    help: "Requests answered, by procedure.",
    labelNames: ["procedure"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [procedure, { buckets }] of stats) {
        this.set(
          { procedure },
          buckets.reduce((sum, count) => sum + count, 0),
        );
      }
    },
  });

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
