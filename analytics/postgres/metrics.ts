import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import type { QueueDepth } from "./rollup-queue.ts";

export const ROLL_UP_METRICS = defineMetrics({
  events: {
    name: "postern_rollup_events_total",
    type: "counter",
    help: "Events that this process added to the aggregated tables",
    unit: "events",
    bad: "No increase while `postern_rollup_waiting_events` is above 0: see `postern_rollup_failures_total`.",
  },
  seconds: {
    name: "postern_rollup_seconds_total",
    type: "counter",
    help: "Time that this process spent on aggregation",
    unit: "seconds",
    bad: "Rate near 1: Postgres is too slow. Add CPU, or use ClickHouse.",
  },
  failures: {
    name: "postern_rollup_failures_total",
    type: "counter",
    help: "Workspaces whose events could not be aggregated; they are retried",
    unit: "workspaces",
    bad: "Rising: see the log. Statistics do not advance; no data is lost.",
  },
  lag: {
    name: "postern_rollup_lag_seconds",
    type: "gauge",
    help: "Age of the oldest stored event that is not aggregated",
    unit: "seconds",
    bad: "Above 60: statistics are that old.",
  },
  waiting: {
    name: "postern_rollup_waiting_events",
    type: "gauge",
    help: "Stored events that are not aggregated",
    unit: "events",
    bad: "Rising for minutes: see `postern_rollup_lag_seconds`.",
  },
});

/** Metrics of the roll-ups. Metrics of ingestion are shared with the ClickHouse store. */
export class RollUpMetrics {
  readonly #events: Counter;
  readonly #seconds: Counter;
  readonly #failures: Counter;
  readonly #lag: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    const of = ROLL_UP_METRICS;
    this.#events = new Counter({ ...exported(of.events), registers });
    this.#seconds = new Counter({ ...exported(of.seconds), registers });
    this.#failures = new Counter({ ...exported(of.failures), registers });
    this.#lag = new Gauge({ ...exported(of.lag), registers });
    this.#waiting = new Gauge({ ...exported(of.waiting), registers });
  }

  ran({ events, ms }: { events: number; ms: number }): void {
    this.#events.inc(events);
    this.#seconds.inc(ms / 1000);
  }

  failed(): void {
    this.#failures.inc();
  }

  recordDepth({ events, ageMs }: QueueDepth): void {
    this.#lag.set(ageMs / 1000);
    this.#waiting.set(events);
  }
}
