import type { Pool } from "pg";
import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported, type Metric } from "../core/metric.ts";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Projection, RefusedKind } from "../edge/projection/contract.ts";

export const STATE_METRICS = defineMetrics({
  // Worst staleness over all workspaces, for alerts: it rises with the first workspace that exceeds the bound. The staleness of the change
  // stream shows whether one workspace's bulk change or the relay is the cause.
  staleness: {
    name: "postern_projection_staleness_seconds",
    type: "gauge",
    help: "Staleness of the stalest workspace; -1 unknown",
    unit: "seconds",
    bad: "Above 30, or -1 for longer than a start takes: this api-server hears of changes late, and asks Postgres for each key instead of its cache. Is the relay well (`postern_relay_leading`), is Redis?",
  },
  streamStaleness: {
    name: "postern_projection_feed_staleness_seconds",
    type: "gauge",
    help: "The same of all workspaces that do not lag; -1 unknown",
    unit: "seconds",
    bad: "High together with `postern_projection_staleness_seconds`: the relay or Redis. Low while that is high: one workspace's bulk change.",
  },
  lagging: {
    name: "postern_projection_lagging_workspaces",
    type: "gauge",
    help: "Workspaces whose changes are delivered later than the others'",
    unit: "workspaces",
    bad: "Above 0 for more than some minutes: as `postern_relay_lagging_workspaces`, seen by a reader.",
  },
  usable: {
    name: "postern_projection_source_usable",
    type: "gauge",
    help: "0 when the last read of records from Postgres was not usable",
    unit: "1 or 0",
    bad: "0: Postgres does not answer this api-server, or answers what is not a record. Keys in the cache are served for 30 seconds.",
  },
  refused: {
    name: "postern_projection_invalid_values_total",
    type: "counter",
    help: "What was read from the change stream or the records and was refused as invalid",
    unit: "values",
    labels: { kind: ["mark", "record", "entry", "heartbeat"] satisfies RefusedKind[] },
    bad: "Any increase: something that is no Postern writes to its keys in Redis, or a clock jumped (`heartbeat`). See who has credentials for Redis.",
  },
  eventsDropped: {
    name: "postern_events_dropped_total",
    type: "counter",
    help: "Usage events of this process that could not be sent",
    unit: "events",
    bad: "Any increase: usage misses verifications (PosternEventsDropped). Is Redis away, or the memory for events full (`postern_events_waiting_bytes`)?",
  },
  overAdmitted: {
    name: "postern_local_over_admitted_total",
    type: "counter",
    help: "Units admitted beyond async limits",
    unit: "units",
    bad: "A small part of all requests is the price of `async`. When it matters, make the limit strict (`async: false`).",
  },
  connections: {
    name: "postern_postgres_connections",
    type: "gauge",
    help: "Connections to Postgres in the pool",
    unit: "connections",
    bad: "It has no bad value by itself. The sum over all processes must stay below `max_connections` of Postgres.",
  },
  waiting: {
    name: "postern_postgres_waiting",
    type: "gauge",
    help: "Requests that wait for a connection to Postgres",
    unit: "requests",
    bad: "Above 0 for minutes: slow statements or too few replicas (PosternPostgresPoolExhausted). Look at `pg_stat_activity`.",
  },
});

/** Exports the state of the databases and caches as this process sees it. Values are read at scrape time. */
export function exportGauges(
  registry: Registry,
  { db, edge, projection, counters }: { db: Pool; edge: Edge; projection: Projection; counters: EdgeCounters },
): void {
  const gauge = (metric: Metric, read: () => number) =>
    new Gauge({
      ...exported(metric),
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  const counter = (metric: Metric, read: () => number) =>
    new Counter({
      ...exported(metric),
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const of = STATE_METRICS;
  gauge(of.staleness, () => toSeconds(projection.stalenessMs()));
  gauge(of.streamStaleness, () => toSeconds(projection.streamStaleness().ms));
  gauge(of.lagging, () => projection.streamStaleness().laggingWorkspaces);
  gauge(of.usable, () => Number(projection.sourceState().usable));
  new Counter({
    ...exported(of.refused),
    registers: [registry],
    collect() {
      this.reset();
      for (const [kind, count] of Object.entries(projection.refused())) this.inc({ kind }, count);
    },
  });
  counter(of.eventsDropped, () => edge.sink.dropped());
  counter(of.overAdmitted, () => counters.overshoots().async.units);
  gauge(of.connections, () => db.totalCount);
  gauge(of.waiting, () => db.waitingCount);
}

const toSeconds = (ms: number): number => (Number.isFinite(ms) ? ms / 1000 : -1);
