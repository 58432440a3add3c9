import type { Pool } from "pg";
import { Gauge, type Registry } from "prom-client";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";
import type { ReadinessCheck } from "./plugins/health.ts";

/** The promise: so long a change may take to be enforced everywhere. */
export const PROPAGATION_BOUND_MS = 30_000;

/** What must hold before an api-server is sent traffic: its stores answer, and keep what they are given; changes arrive. */
export function readinessChecks({
  db,
  edge,
  projection,
}: {
  db: Pool;
  edge: Edge;
  projection: Projection;
}): ReadinessCheck[] {
  return [
    { name: "postgres", check: async () => void (await db.query("select 1")) },
    { name: "store", check: () => edge.ping() },
    {
      name: "store-eviction",
      check: async () => {
        const { evictionPolicy = "noeviction" } = await edge.info();
        if (evictionPolicy !== "noeviction") {
          throw new Error(`Redis evicts keys (maxmemory-policy ${evictionPolicy}); set it to noeviction`);
        }
      },
    },
    {
      name: "propagation",
      check: async () => {
        // Of the feed, not of the worst workspace: one tenant's bulk change says nothing about this replica.
        const { ms } = projection.feedStaleness();
        if (ms > PROPAGATION_BOUND_MS) {
          throw new Error(`changes take ${Math.round(ms / 1000)} s and more to reach the pods`);
        }
      },
    },
  ];
}

/** What the stores and caches look like from this process, read when the metrics are. */
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
  // An alert wants to hear of the first workspace for which the promise is broken; what it is compared with says whether it
  // is one workspace's bulk change or the relay.
  gauge(
    "postern_projection_staleness_seconds",
    "Age of the knowledge of the workspace where it is oldest; -1 unknown",
    () => toSeconds(projection.stalenessMs()),
  );
  gauge("postern_projection_feed_staleness_seconds", "The same of all workspaces that do not lag; -1 unknown", () =>
    toSeconds(projection.feedStaleness().ms),
  );
  gauge(
    "postern_projection_lagging_workspaces",
    "Workspaces whose changes are delivered later than the others'",
    () => projection.feedStaleness().laggingWorkspaces,
  );
  gauge("postern_events_dropped", "Usage events that could not be sent, since the start", () => edge.sink.dropped());
  gauge("postern_local_over_admitted", "Units admitted beyond async limits, since the start", () =>
    counters.overAdmitted(),
  );
  gauge("postern_postgres_connections", "Connections to Postgres in the pool", () => db.totalCount);
  gauge("postern_postgres_waiting", "Requests that wait for a connection to Postgres", () => db.waitingCount);
}

const toSeconds = (ms: number): number => (Number.isFinite(ms) ? ms / 1000 : -1);
