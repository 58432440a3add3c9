import type { Pool } from "pg";
import { Counter, Gauge, type Registry } from "prom-client";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";

/** Exports the state of the stores and caches as seen by this process; read when the metrics are. */
export function exportGauges(
  registry: Registry,
  { db, edge, projection, counters }: { db: Pool; edge: Edge; projection: Projection; counters: EdgeCounters },
): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  // An alert should fire for the first workspace for which the promise is broken. The feed's staleness next to it shows whether
  // the cause is one workspace's bulk change or the relay.
  gauge("postern_projection_staleness_seconds", "Staleness of the stalest workspace; -1 unknown", () =>
    toSeconds(projection.stalenessMs()),
  );
  gauge("postern_projection_feed_staleness_seconds", "The same of all workspaces that do not lag; -1 unknown", () =>
    toSeconds(projection.feedStaleness().ms),
  );
  gauge(
    "postern_projection_lagging_workspaces",
    "Workspaces whose changes are delivered later than the others'",
    () => projection.feedStaleness().laggingWorkspaces,
  );
  gauge("postern_projection_source_usable", "0 when the last read of records from Postgres was not usable", () =>
    Number(projection.sourceState().usable),
  );
  new Counter({
    name: "postern_projection_refused_total",
    help: "What was read from the change stream or the records and was refused as invalid",
    labelNames: ["what"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [what, count] of Object.entries(projection.refused())) this.inc({ what }, count);
    },
  });
  gauge("postern_events_dropped", "Usage events that could not be sent, since the start", () => edge.sink.dropped());
  gauge(
    "postern_local_over_admitted",
    "Units admitted beyond async limits, since the start",
    () => counters.overshoots().async.units,
  );
  gauge("postern_postgres_connections", "Connections to Postgres in the pool", () => db.totalCount);
  gauge("postern_postgres_waiting", "Requests that wait for a connection to Postgres", () => db.waitingCount);
}

const toSeconds = (ms: number): number => (Number.isFinite(ms) ? ms / 1000 : -1);
