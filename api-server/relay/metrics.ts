import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";

export const RELAY_METRICS = defineMetrics({
  leading: {
    name: "postern_relay_leading",
    type: "gauge",
    help: "1 while this process relays changes",
    unit: "1 or 0",
    bad: "The sum over all api-servers is 1. 0 for longer than ten seconds: no process carries changes to the gates (PosternRelayDown).",
  },
  depth: {
    name: "postern_outbox_depth",
    type: "gauge",
    help: "Marks that wait in the outbox",
    unit: "marks",
    bad: "It rises during a bulk change and falls again. Rising for minutes: the relay is too slow, or Redis does not take writes; see `postern_relay_failures_total` and the log line `relay failed; retrying`.",
  },
  asOf: {
    name: "postern_relay_as_of_timestamp_seconds",
    type: "gauge",
    help: "Everything committed before this moment has been projected; 0 where this process does not relay",
    unit: "Unix seconds",
    bad: "`time() - max(…)` above 30: revoked keys may still work (PosternPropagationDelayed).",
  },
  lagging: {
    name: "postern_relay_lagging_workspaces",
    type: "gauge",
    help: "Workspaces whose changes are delivered up to an earlier moment than those of the others",
    unit: "workspaces",
    bad: "Above 0 for more than some minutes: a bulk change, or records that cannot be written (PosternWorkspacePropagationDelayed).",
  },
  rebuilt: {
    name: "postern_relay_rebuild_records",
    type: "gauge",
    help: "Records written by the current or the last full projection",
    unit: "records",
    bad: "It has no bad value. It rises while Redis is filled again; standing still below the number of keys, the rebuild does not get on: see the log for `relay failed; retrying`.",
  },
  carried: {
    name: "postern_relay_changes_total",
    type: "counter",
    help: "Marks relayed from the outbox",
    unit: "marks",
    bad: "It has no bad value. No increase while `postern_outbox_depth` is above 0: the relay stands still.",
  },
  rebuilds: {
    name: "postern_relay_rebuilds_total",
    type: "counter",
    help: "Times everything was projected again",
    unit: "rebuilds",
    bad: "Each increase means that Redis or Postgres went back in time, or lost data. More than one a day: look at Redis (restarts, `maxmemory-policy`, failovers).",
  },
  failures: {
    name: "postern_relay_failures_total",
    type: "counter",
    help: "Times the relay had to start again",
    unit: "failures",
    bad: "An increase with each outage of Postgres or Redis is normal. Rising while both are well: the log has the reason in `relay failed; retrying`.",
  },
});

export type RelayMetrics = ReturnType<typeof createRelayMetrics>;

export function createRelayMetrics(registry: Registry) {
  const registers = [registry];
  const { leading, depth, asOf, lagging, rebuilt, carried, rebuilds, failures } = RELAY_METRICS;
  return {
    leading: new Gauge({ ...exported(leading), registers }),
    depth: new Gauge({ ...exported(depth), registers }),
    asOf: new Gauge({ ...exported(asOf), registers }),
    lagging: new Gauge({ ...exported(lagging), registers }),
    rebuilt: new Gauge({ ...exported(rebuilt), registers }),
    carried: new Counter({ ...exported(carried), registers }),
    rebuilds: new Counter({ ...exported(rebuilds), registers }),
    failures: new Counter({ ...exported(failures), registers }),
  };
}
