import { Counter, Histogram, type Registry } from "prom-client";
import type { ErrorKind } from "../../core/errors.ts";
import { defineMetrics, exported } from "../../core/metric.ts";

export const QUERY_METRICS = defineMetrics({
  queries: {
    name: "postern_analytics_queries_total",
    type: "counter",
    help: "Queries of analytics.getVerifications and getRatelimits, by outcome",
    unit: "queries",
    labels: { outcome: "`answered`, `abandoned` by its caller, or the kind of an error" },
    bad: "Many errors of one kind: `analytics_connection_failed` means that the store of usage is away, `server_busy` that queries waited 15 s for others to end: add replicas, or narrow the slow ones; the others are mistakes of callers, or limits of their workspaces.",
  },
  seconds: {
    name: "postern_analytics_query_duration_seconds",
    type: "histogram",
    help: "How long the analytics store worked on a query of a caller",
    unit: "seconds",
    bad: "The 99th percentile near what the workspaces allow: queries are ended by their limit. Ask for less time at once, or keep usage in ClickHouse.",
  },
});

/** What is counted of the queries of callers. No label is a caller's own. */
export class QueryMetrics {
  readonly #queries: Counter<"outcome">;
  readonly #seconds: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#queries = new Counter({ ...exported(QUERY_METRICS.queries), registers });
    const buckets = [0.01, 0.05, 0.1, 0.3, 1, 3, 10, 30];
    this.#seconds = new Histogram({ ...exported(QUERY_METRICS.seconds), buckets, registers });
  }

  /** `abandoned`: its caller has gone. */
  ended(outcome: ErrorKind | "answered" | "abandoned"): void {
    this.#queries.inc({ outcome });
  }

  ran(ms: number): void {
    this.#seconds.observe(ms / 1000);
  }
}
