import { Counter, Histogram, type Registry } from "prom-client";
import type { ErrorKind } from "../core/errors.ts";
import { defineMetrics, exported } from "../core/metric.ts";

export const QUERY_METRICS = defineMetrics({
  queries: {
    name: "postern_analytics_queries_total",
    type: "counter",
    help: "Queries of analytics.getVerifications and getRatelimits, by outcome",
    unit: "queries",
    labels: { outcome: "`answered`, `abandoned` by its caller, or the kind of an error" },
    bad: "`analytics_connection_failed`: the database is down. `server_busy`: queries waited 15 s; add replicas or narrow slow queries. Others: errors of callers, or workspace limits.",
  },
  seconds: {
    name: "postern_analytics_query_duration_seconds",
    type: "histogram",
    help: "Execution time of callers' queries",
    unit: "seconds",
    bad: "p99 near the workspace limits: queries time out. Query shorter periods, or use ClickHouse.",
  },
});

/** Metrics of caller queries. No label contains caller input. */
export class QueryMetrics {
  readonly #queries: Counter<"outcome">;
  readonly #seconds: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#queries = new Counter({ ...exported(QUERY_METRICS.queries), registers });
    const buckets = [0.01, 0.05, 0.1, 0.3, 1, 3, 10, 30];
    this.#seconds = new Histogram({ ...exported(QUERY_METRICS.seconds), buckets, registers });
  }

  /** Counts a query that has ended. `abandoned`: its caller has disconnected. */
  ended(outcome: ErrorKind | "answered" | "abandoned"): void {
    this.#queries.inc({ outcome });
  }

  ran(ms: number): void {
    this.#seconds.observe(ms / 1000);
  }
}
