import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported, type Metric } from "../../core/metric.ts";
import type { KeptBudget, StreamDepth } from "../../edge/events/contract.ts";
import type { Ingested } from "../analytics/contract.ts";

export const INGEST_METRICS = defineMetrics({
  failures: {
    name: "postern_events_batch_failures_total",
    type: "counter",
    help: "Turns of a workspace in which no event could be stored",
    unit: "turns",
    bad: "Rising: the store of usage does not take them, see `postern_degraded` and the log line `failed for a workspace; retrying`. Events wait meanwhile.",
  },
  stored: {
    name: "postern_events_stored_total",
    type: "counter",
    help: "Events that were stored, each once",
    unit: "events",
    bad: "No increase while requests are verified: see `postern_events_lag_seconds`.",
  },
  late: {
    name: "postern_events_late_total",
    type: "counter",
    help: "Events that came more than a day after they had happened, and were left out",
    unit: "events",
    bad: "Any increase: the ingestion was away for a day, or a pod's clock is wrong. Usage misses these events.",
  },
  omitted: {
    name: "postern_events_unreadable_total",
    type: "counter",
    help: "Entries and events that could not be understood, or lie ahead, and were left out",
    unit: "events",
    bad: "Any increase: a pod's clock is more than an hour ahead, a gate is of a newer release than the ingestion, or something that is no Postern writes to Redis.",
  },
  setAside: {
    name: "postern_events_invalid_streams_total",
    type: "counter",
    help: "Keys that were removed because they were no stream of events",
    unit: "keys",
    bad: "Any increase: something that is no Postern writes to Redis with the credentials of a workspace.",
  },
  trimmed: {
    name: "postern_events_trimmed_total",
    type: "counter",
    help: "Entries removed unread, because a writer did not keep to its room",
    unit: "entries",
    bad: "Any increase: usage misses events (PosternEventsDropped), and a gate that does not keep to its room may be compromised.",
  },
  budget: {
    name: "postern_events_budget_bytes",
    type: "gauge",
    help: "Memory that all event streams may use; 0 in a process that does not keep the budget",
    unit: "bytes",
    bad: "Much less than `--events-memory`: Redis has little room left, see its `maxmemory`.",
  },
  waitingEntries: {
    name: "postern_events_waiting_entries",
    type: "gauge",
    help: "Entries in the streams of events, each a batch",
    unit: "entries",
    bad: "Rising for minutes: events come faster than they are stored. Start more `postern ingest`, or see why the store is slow.",
  },
  waitingBytes: {
    name: "postern_events_waiting_bytes",
    type: "gauge",
    help: "Memory of the streams of events, about",
    unit: "bytes",
    bad: "Near `postern_events_budget_bytes`: the next events are dropped.",
  },
  lag: {
    name: "postern_events_lag_seconds",
    type: "gauge",
    help: "Age of the oldest event that is not stored",
    unit: "seconds",
    bad: "Above 300 (PosternIngestionDelayed): the store of usage is away or too slow. Verifications are not affected.",
  },
});

interface Seen {
  readonly entries: number;
  readonly bytes: number;
  /** Time at which the oldest entry was written, by `performance.now()`. */
  readonly sinceMs: number;
}

/** Metrics of the ingestion: sums over all workspaces, because a label per workspace would have too many values. */
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

  /** Records the poll result of these workspaces. */
  looked(workspaceIds: readonly string[], depths: readonly StreamDepth[]): void {
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
