import type { Pool } from "pg";
import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported, type Metric } from "../../core/metric.ts";
import type { Edge, EdgeCounters } from "../../edge/open.ts";
import type { Projection, RefusedKind } from "../../edge/projection/contract.ts";

export const STATE_METRICS = defineMetrics({
  // Staleness of the stalest workspace. Alerts use it, because a single late workspace raises it. The staleness of the change stream shows
  // whether the cause is a bulk change in one workspace or the relay.
  staleness: {
    name: "postern_projection_staleness_seconds",
    type: "gauge",
    help: "Staleness of the stalest workspace; -1 if unknown",
    unit: "seconds",
    bad: "Above 30, or -1 after startup: changes arrive late, and each key is read from Postgres. Check the relay (`postern_relay_leading`) and Redis.",
  },
  streamStaleness: {
    name: "postern_projection_feed_staleness_seconds",
    type: "gauge",
    help: "Staleness of the workspaces that do not lag; -1 if unknown",
    unit: "seconds",
    bad: "High with `postern_projection_staleness_seconds`: relay or Redis. Low while the other is high: a bulk change of one workspace.",
  },
  lagging: {
    name: "postern_projection_lagging_workspaces",
    type: "gauge",
    help: "Workspaces whose changes are delivered later than those of other workspaces, as read by this process",
    unit: "workspaces",
    bad: "Above 0 for minutes: see `postern_relay_lagging_workspaces`.",
  },
  usable: {
    name: "postern_projection_source_usable",
    type: "gauge",
    help: "0 if the last read of records from Postgres failed",
    unit: "1 or 0",
    bad: "0: Postgres is unavailable or returned invalid records. Cached keys are served for 30 s.",
  },
  refused: {
    name: "postern_projection_invalid_values_total",
    type: "counter",
    help: "Invalid values read from the change stream or the records",
    unit: "values",
    labels: { kind: ["state", "record", "entry", "heartbeat"] satisfies RefusedKind[] },
    bad: "Any increase: another client writes to Postern's keys in Redis, or a clock jumped (`heartbeat`). Check the Redis credentials.",
  },
  eventsDropped: {
    name: "postern_events_dropped_total",
    type: "counter",
    help: "Usage events of this process that could not be sent",
    unit: "events",
    bad: "Any increase (PosternEventsDropped).",
  },
  overAdmitted: {
    name: "postern_local_over_admitted_total",
    type: "counter",
    help: "Units admitted beyond async limits",
    unit: "units",
    bad: "A small share is the cost of `async`. To avoid it, use `async: false`.",
  },
  connections: {
    name: "postern_postgres_connections",
    type: "gauge",
    help: "Postgres connections in the pool",
    unit: "connections",
    bad: "The sum over all processes must stay below `max_connections`.",
  },
  waiting: {
    name: "postern_postgres_waiting",
    type: "gauge",
    help: "Requests that wait for a Postgres connection",
    unit: "requests",
    bad: "Above 0 for minutes (PosternPostgresPoolExhausted).",
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
  counter(of.overAdmitted, () => counters.overAdmissions().async.units);
  gauge(of.connections, () => db.totalCount);
  gauge(of.waiting, () => db.waitingCount);
}

const toSeconds = (ms: number): number => (Number.isFinite(ms) ? ms / 1000 : -1);
