import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import { STORE_PROBLEMS, type StoreProblem } from "../contract.ts";

export type Operation = "insert" | "query" | "schema";

export const CLICKHOUSE_METRICS = defineMetrics({
  rows: {
    name: "postern_clickhouse_inserted_rows_total",
    type: "counter",
    help: "Rows in inserts that ClickHouse accepted, including duplicates",
    unit: "rows",
    bad: "No increase while requests are verified: see `postern_clickhouse_degraded`.",
  },
  seconds: {
    name: "postern_clickhouse_insert_duration_seconds",
    type: "histogram",
    help: "Duration of inserts that ClickHouse accepted",
    unit: "seconds",
    bad: "Above 10: ClickHouse is overloaded, or its disk is slow.",
  },
  failures: {
    name: "postern_clickhouse_failures_total",
    type: "counter",
    help: "Failed ClickHouse operations",
    unit: "operations",
    labels: { operation: ["insert", "query", "schema"] satisfies Operation[], reason: STORE_PROBLEMS },
    bad: "Rising: see the reason. Events wait in Redis.",
  },
  insertedAt: {
    name: "postern_clickhouse_inserted_timestamp_seconds",
    type: "gauge",
    help: "Time of the last insert of this process; 0 before the first",
    unit: "Unix seconds",
    bad: "Long ago while requests are verified: see `postern_clickhouse_degraded`.",
  },
  degraded: {
    name: "postern_clickhouse_degraded",
    type: "gauge",
    help: "1 while ClickHouse has a problem, by reason",
    unit: "1 or 0",
    labels: { reason: STORE_PROBLEMS },
    bad: "1: fix the reason. `access_denied` can also mean a missing table. Only usage is affected.",
  },
});

/** Metrics of this process's ClickHouse operations. Ingestion and query metrics are shared with the Postgres store. */
export class ClickhouseMetrics {
  readonly #rows: Counter;
  readonly #seconds: Histogram;
  readonly #failures: Counter<"operation" | "reason">;
  readonly #insertedAt: Gauge;
  #problem: StoreProblem | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    const of = CLICKHOUSE_METRICS;
    this.#rows = new Counter({ ...exported(of.rows), registers });
    this.#seconds = new Histogram({ ...exported(of.seconds), buckets: [0.03, 0.1, 0.3, 1, 3, 10, 30], registers });
    this.#failures = new Counter({ ...exported(of.failures), registers });
    this.#insertedAt = new Gauge({ ...exported(of.insertedAt), registers });
    const current = () => this.#problem;
    new Gauge({
      ...exported(of.degraded),
      registers,
      collect() {
        for (const reason of STORE_PROBLEMS) this.set({ reason }, current() === reason ? 1 : 0);
      },
    });
  }

  inserted({ rows, ms }: { rows: number; ms: number }): void {
    this.#rows.inc(rows);
    this.#seconds.observe(ms / 1000);
    this.#insertedAt.setToCurrentTime();
  }

  failed(operation: Operation, reason: StoreProblem): void {
    this.#failures.inc({ operation, reason });
  }

  recordCheck(problem: StoreProblem | undefined): void {
    this.#problem = problem;
  }
}
