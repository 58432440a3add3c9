import { Counter, Gauge, type Registry } from "prom-client";
import type { Ingested } from "../../analytics/contract.ts";
import { defineMetrics, exported, type Metric } from "../../core/metric.ts";
import type { KeptBudget, StreamDepth } from "../../edge/events/contract.ts";

export const INGEST_METRICS = defineMetrics({
  failures: {
    name: "postern_events_batch_failures_total",
    type: "counter",
    help: "Ingestion runs, each for one workspace, that failed without storing any event",
    unit: "turns",
    bad: "Rising: see `postern_degraded` and the log line `failed for a workspace; retrying`. Events wait.",
  },
  stored: {
    name: "postern_events_stored_total",
    type: "counter",
    help: "Stored events, without duplicates",
    unit: "events",
    bad: "No increase while requests are verified: see `postern_events_lag_seconds`.",
  },
  late: {
    name: "postern_events_late_total",
    type: "counter",
    help: "Events discarded because they arrived more than a day late",
    unit: "events",
    bad: "Any increase: ingestion was down for a day, or a clock is wrong. Usage is incomplete.",
  },
  omitted: {
    name: "postern_events_unreadable_total",
    type: "counter",
    help: "Invalid or future events and entries, which were discarded",
    unit: "events",
    bad: "Any increase: a clock is over an hour ahead, a gate is newer than the ingestion, or another client writes to Redis.",
  },
  setAside: {
    name: "postern_events_invalid_streams_total",
    type: "counter",
    help: "Keys removed because they were not event streams",
    unit: "keys",
    bad: "Any increase: another client writes to Redis with the credentials of a workspace.",
  },
  trimmed: {
    name: "postern_events_trimmed_total",
    type: "counter",
    help: "Unread entries removed because a writer exceeded its share of memory",
    unit: "entries",
    bad: "Any increase (PosternEventsDropped): the gate may be compromised.",
  },
  budget: {
    name: "postern_events_budget_bytes",
    type: "gauge",
    help: "Memory that all event streams may use; 0 in processes that do not manage it",
    unit: "bytes",
    bad: "Far below `--events-memory`: Redis is near its `maxmemory`.",
  },
  waitingEntries: {
    name: "postern_events_waiting_entries",
    type: "gauge",
    help: "Batches in the event streams",
    unit: "entries",
    bad: "Rising for minutes: add `postern ingest`, or find out why storage is slow.",
  },
  waitingBytes: {
    name: "postern_events_waiting_bytes",
    type: "gauge",
    help: "Approximate memory of the event streams",
    unit: "bytes",
    bad: "Near `postern_events_budget_bytes`: the next events are dropped.",
  },
  lag: {
    name: "postern_events_lag_seconds",
    type: "gauge",
    help: "Age of the oldest event that is not stored",
    unit: "seconds",
    bad: "Above 300 (PosternIngestionDelayed).",
  },
});

interface Seen {
  readonly entries: number;
  readonly bytes: number;
  /** Time at which the oldest entry was written, as `performance.now()`. */
  readonly sinceMs: number;
}

/** Metrics of the ingestion. They are sums over all workspaces, because a label per workspace would have too many values. */
export class IngestMetrics {
  readonly #seen = new Map<string, Seen>();
  readonly #failures: Counter;
  readonly #stored: Counter;
  readonly #late: Counter;
  readonly #omitted: Counter;
  readonly #setAside: Counter;
  readonly #trimmed: Counter;
  readonly #budget: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    const counter = (metric: Metric) => new Counter({ ...exported(metric), registers });
    const of = INGEST_METRICS;
    this.#failures = counter(of.failures);
    this.#stored = counter(of.stored);
    this.#late = counter(of.late);
    this.#omitted = counter(of.omitted);
    this.#setAside = counter(of.setAside);
    this.#trimmed = counter(of.trimmed);
    this.#budget = new Gauge({ ...exported(of.budget), registers });
    const sum = (metric: Metric, read: (seen: Seen) => number) =>
      this.#gauge(registry, metric, (all) => all.reduce((total, seen) => total + read(seen), 0));
    sum(of.waitingEntries, (seen) => seen.entries);
    sum(of.waitingBytes, (seen) => seen.bytes);
    this.#gauge(registry, of.lag, (all) =>
      all.reduce((oldest, { sinceMs }) => Math.max(oldest, (performance.now() - sinceMs) / 1000), 0),
    );
  }

  /** Records the result of polling the streams of these workspaces. */
  recordDepths(workspaceIds: readonly string[], depths: readonly StreamDepth[]): void {
    for (const id of workspaceIds) this.#seen.delete(id);
    const nowMs = performance.now();
    for (const { workspaceId, entries, bytes, ageMs } of depths) {
      this.#seen.set(workspaceId, { entries, bytes, sinceMs: nowMs - ageMs });
    }
  }

  failed(): void {
    this.#failures.inc();
  }

  omitted(count: number): void {
    this.#omitted.inc(count);
  }

  ingested({ stored, late, omitted }: Ingested): void {
    this.#stored.inc(stored);
    this.#late.inc(late);
    this.#omitted.inc(omitted);
  }

  setAside(): void {
    this.#setAside.inc();
  }

  kept(budget: KeptBudget | undefined): void {
    this.#budget.set(budget?.totalBytes ?? 0);
    this.#trimmed.inc(budget?.trimmed ?? 0);
  }

  #gauge(registry: Registry, metric: Metric, read: (all: readonly Seen[]) => number): void {
    const seen = this.#seen;
    new Gauge({
      ...exported(metric),
      registers: [registry],
      collect() {
        this.set(read([...seen.values()]));
      },
    });
  }
}
