import { Counter, Gauge, type Registry } from "prom-client";
import type { KeptBudget, StreamDepth } from "../../edge/events/contract.ts";
import type { Ingested } from "../analytics/contract.ts";

interface Seen {
  readonly entries: number;
  readonly bytes: number;
  /** When the oldest entry was written, by `performance.now()`. */
  readonly sinceMs: number;
}

/** The metrics of the ingestion: sums over all workspaces, because a label per workspace would be too many. */
export class IngestMetrics {
  readonly #seen = new Map<string, Seen>();
  readonly #failures: Counter;
  readonly #stored: Counter;
  readonly #late: Counter;
  readonly #leftOut: Counter;
  readonly #setAside: Counter;
  readonly #trimmed: Counter;
  readonly #budget: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    const counter = (name: string, help: string) => new Counter({ name, help, registers });
    this.#failures = counter(
      "postern_events_failed_turns_total",
      "Turns of a workspace in which no event could be stored",
    );
    this.#stored = counter("postern_events_stored_total", "Events that were stored, each once");
    this.#late = counter(
      "postern_events_late_total",
      "Events that came more than a day after they had happened, and were left out",
    );
    this.#leftOut = counter(
      "postern_events_unreadable_total",
      "Entries and events that could not be understood, or lie ahead, and were left out",
    );
    this.#setAside = counter(
      "postern_events_set_aside_total",
      "Keys that were removed because they were no stream of events",
    );
    this.#trimmed = counter(
      "postern_events_trimmed_total",
      "Entries removed unread, because a writer did not keep to its room",
    );
    this.#budget = new Gauge({
      name: "postern_events_budget_bytes",
      help: "Memory that all event streams may use; 0 in an api-server that does not keep the budget",
      registers,
    });
    const sum = (name: string, help: string, read: (seen: Seen) => number) =>
      this.#gauge(registry, { name, help }, (all) => all.reduce((total, seen) => total + read(seen), 0));
    sum("postern_events_waiting_entries", "Entries in the streams of events, each a batch", (seen) => seen.entries);
    sum("postern_events_waiting_bytes", "Memory of the streams of events, about", (seen) => seen.bytes);
    this.#gauge(
      registry,
      { name: "postern_events_lag_seconds", help: "Age of the oldest event that is not stored" },
      (all) => all.reduce((oldest, { sinceMs }) => Math.max(oldest, (performance.now() - sinceMs) / 1000), 0),
    );
  }

  /** Records the result of `look` for these workspaces. */
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

  leftOut(count: number): void {
    this.#leftOut.inc(count);
  }

  ingested({ stored, late, leftOut }: Ingested): void {
    this.#stored.inc(stored);
    this.#late.inc(late);
    this.#leftOut.inc(leftOut);
  }

  setAside(): void {
    this.#setAside.inc();
  }

  kept(budget: KeptBudget | undefined): void {
    this.#budget.set(budget?.totalBytes ?? 0);
    this.#trimmed.inc(budget?.trimmed ?? 0);
  }

  #gauge(registry: Registry, about: { name: string; help: string }, read: (all: readonly Seen[]) => number): void {
    const seen = this.#seen;
    new Gauge({
      ...about,
      registers: [registry],
      collect() {
        this.set(read([...seen.values()]));
      },
    });
  }
}
