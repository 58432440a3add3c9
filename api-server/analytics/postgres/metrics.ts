import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../../core/metric.ts";
import type { QueueDepth } from "./rollup-queue.ts";

export const ROLL_UP_METRICS = defineMetrics({
  events: {
    name: "postern_rollup_events_total",
    type: "counter",
    help: "Events that this process has added to the aggregated tables",
    unit: "events",
    bad: "It has no bad value. No increase while `postern_rollup_waiting_events` is above 0: see `postern_rollup_failures_total`.",
  },
  seconds: {
    name: "postern_rollup_seconds_total",
    type: "counter",
    help: "Time that this process has spent on adding events to the aggregated tables",
    unit: "seconds",
    bad: "Its rate near 1: Postgres cannot add up faster than events come. Give it more, or keep usage in ClickHouse.",
  },
  failures: {
    name: "postern_rollup_failures_total",
    type: "counter",
    help: "Workspaces whose events could not be added to the aggregated tables; they are tried again",
    unit: "workspaces",
    bad: "Rising: the log has the reason. Statistics of these workspaces stand still; nothing is lost.",
  },
  lag: {
    name: "postern_rollup_lag_seconds",
    type: "gauge",
    help: "Age of the oldest stored event that is not in the aggregated tables",
    unit: "seconds",
    bad: "Above 60: statistics are that old. Postgres is slow, or a roll-up fails.",
  },
  waiting: {
    name: "postern_rollup_waiting_events",
    type: "gauge",
    help: "Stored events that are not in the aggregated tables",
    unit: "events",
    bad: "Rising for minutes: as `postern_rollup_lag_seconds`.",
  },
});

/** The metrics of the roll-ups; those of the ingestion are the same for every store. */
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

  looked({ events, ageMs }: QueueDepth): void {
    this.#lag.set(ageMs / 1000);
    this.#waiting.set(events);
  }
}
