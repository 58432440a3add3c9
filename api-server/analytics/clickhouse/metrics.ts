import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { STORE_TROUBLES, type StoreTrouble } from "../contract.ts";

export type Operation = "insert" | "query" | "schema";

/** What ClickHouse does for this process; the metrics of the ingestion and of queries are the same for every store. */
export class ClickhouseMetrics {
  readonly #rows: Counter;
  readonly #seconds: Histogram;
  readonly #failures: Counter<"operation" | "reason">;
  readonly #insertedAt: Gauge;
  #trouble: StoreTrouble | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#rows = new Counter({
      name: "postern_clickhouse_inserted_rows_total",
      help: "Rows of events in the inserts that ClickHouse has accepted, also those that it knew already",
      registers,
    });
    this.#seconds = new Histogram({
      name: "postern_clickhouse_insert_seconds",
      help: "How long the inserts took that ClickHouse has accepted",
      buckets: [0.03, 0.1, 0.3, 1, 3, 10, 30],
      registers,
    });
    this.#failures = new Counter({
      name: "postern_clickhouse_failures_total",
      help: "What ClickHouse did not do, by operation and by reason: away, refuses, full, read-only, overloaded, slow",
      labelNames: ["operation", "reason"],
      registers,
    });
    this.#insertedAt = new Gauge({
      name: "postern_clickhouse_inserted_timestamp_seconds",
      help: "When this process last stored events in ClickHouse; 0 before the first time",
      registers,
    });
    const current = () => this.#trouble;
    new Gauge({
      name: "postern_clickhouse_trouble",
      help: "1 while ClickHouse cannot be used as it should, by reason",
      labelNames: ["reason"],
      registers,
      collect() {
        for (const reason of STORE_TROUBLES) this.set({ reason }, current() === reason ? 1 : 0);
      },
    });
  }

  inserted({ rows, ms }: { rows: number; ms: number }): void {
    this.#rows.inc(rows);
    this.#seconds.observe(ms / 1000);
    this.#insertedAt.setToCurrentTime();
  }

  failed(operation: Operation, reason: StoreTrouble): void {
    this.#failures.inc({ operation, reason });
  }

  looked(trouble: StoreTrouble | undefined): void {
    this.#trouble = trouble;
  }
}
