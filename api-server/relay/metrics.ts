import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";

export const RELAY_METRICS = defineMetrics({
  leading: {
    name: "postern_relay_leading",
    type: "gauge",
    help: "1 while this process relays changes",
    unit: "1 or 0",
    bad: "Sum over all api-servers not 1 for more than 10 s (PosternRelayDown).",
  },
  depth: {
    name: "postern_outbox_depth",
    type: "gauge",
    help: "Entries that wait in the outbox",
    unit: "entries",
    bad: "Rising for minutes outside a bulk change: slow relay, or Redis rejects writes. See `postern_relay_failures_total`.",
  },
  asOf: {
    name: "postern_relay_as_of_timestamp_seconds",
    type: "gauge",
    help: "Changes committed before this time are projected; 0 if this process does not relay",
    unit: "Unix seconds",
    bad: "`time() - max(…)` above 30 (PosternPropagationDelayed).",
  },
  lagging: {
    name: "postern_relay_lagging_workspaces",
    type: "gauge",
    help: "Workspaces whose changes are delivered later than those of other workspaces",
    unit: "workspaces",
    bad: "Above 0 for minutes (PosternWorkspacePropagationDelayed).",
  },
  rebuilt: {
    name: "postern_relay_rebuild_records",
    type: "gauge",
    help: "Records written by the current or last full projection",
    unit: "records",
    bad: "Constant below the number of keys during a rebuild: see the log line `relay failed; retrying`.",
  },
  relayed: {
    name: "postern_relay_changes_total",
    type: "counter",
    help: "Changes relayed from the outbox",
    unit: "entries",
    bad: "No increase while `postern_outbox_depth` is above 0: the relay is stuck.",
  },
  rebuilds: {
    name: "postern_relay_rebuilds_total",
    type: "counter",
    help: "Full projections",
    unit: "rebuilds",
    bad: "Each increase means that Redis or Postgres lost data or was restored. More than one a day: check Redis restarts, failovers and `maxmemory-policy`.",
  },
  failures: {
    name: "postern_relay_failures_total",
    type: "counter",
    help: "Restarts of the relay after a failure",
    unit: "failures",
    bad: "Rising without an outage of Postgres or Redis: see the log line `relay failed; retrying`.",
  },
});

export type RelayMetrics = ReturnType<typeof createRelayMetrics>;

export function createRelayMetrics(registry: Registry) {
  const registers = [registry];
  const { leading, depth, asOf, lagging, rebuilt, relayed, rebuilds, failures } = RELAY_METRICS;
  return {
    leading: new Gauge({ ...exported(leading), registers }),
    depth: new Gauge({ ...exported(depth), registers }),
    asOf: new Gauge({ ...exported(asOf), registers }),
    lagging: new Gauge({ ...exported(lagging), registers }),
    rebuilt: new Gauge({ ...exported(rebuilt), registers }),
    relayed: new Counter({ ...exported(relayed), registers }),
    rebuilds: new Counter({ ...exported(rebuilds), registers }),
    failures: new Counter({ ...exported(failures), registers }),
  };
}
