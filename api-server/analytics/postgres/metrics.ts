import { Counter, Gauge, type Registry } from "prom-client";
import type { QueueDepth } from "./rollup-queue.ts";

/** The metrics of the roll-ups; those of the ingestion are the same for every store. */
export class RollUpMetrics {
  readonly #events: Counter;
  readonly #seconds: Counter;
  readonly #failures: Counter;
  readonly #lag: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#events = new Counter({
      name: "postern_rollup_events_total",
      help: "Events that this process has added to the aggregated tables",
      registers,
    });
    this.#seconds = new Counter({
      name: "postern_rollup_seconds_total",
      help: "Time that this process has spent on adding events to the aggregated tables",
      registers,
    });
    this.#failures = new Counter({
      name: "postern_rollup_failures_total",
      help: "Workspaces whose events could not be added to the aggregated tables; they are tried again",
      registers,
    });
    this.#lag = new Gauge({
      name: "postern_rollup_lag_seconds",
      help: "Age of the oldest stored event that is not in the aggregated tables",
      registers,
    });
    this.#waiting = new Gauge({
      name: "postern_rollup_waiting_events",
      help: "Stored events that are not in the aggregated tables",
      registers,
    });
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
