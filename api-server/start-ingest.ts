import type { Logger } from "pino";
import { Registry } from "prom-client";
import { type AnalyticsAddress, openAnalytics } from "../analytics/open.ts";
import type { Closeable } from "../edge/closeable.ts";
import type { Edge } from "../edge/open.ts";
import type { DatabaseUrl } from "../postgres/pool.ts";
import { createPool } from "../postgres/pool.ts";
import { createLoopFailures, startLoop } from "./background/loop.ts";
import { migrate } from "./db/migrate.ts";
import { listWorkspaceIds } from "./db/workspaces.ts";
import { startAdmin } from "./health/probe-server.ts";
import { startIngestion } from "./ingest/ingestion.ts";
import { atMost } from "./lifecycle/shutdown.ts";
import { untilPostgres, WAITING, type WaitingReason } from "./lifecycle/until-postgres.ts";

const WORKSPACES_EVERY_MS = 1000;
/** Poll interval of the metric that reports problems of the analytics store. */
const POLL_INTERVAL_MS = 1000;
/**
 * Maximum age of the last successful batch. If it is older, the process is not ready; the usual cause is a database that does not respond.
 */
const READY_MS_MAX = 30_000;
/**
 * Maximum number of connections. It is high enough that no work waits for one: two for batches, one each for a roll-up, the partitions and
 * the list of workspaces, and one spare.
 */
const CONNECTIONS_MAX = 6;

export interface IngestConfig {
  readonly databaseUrl: DatabaseUrl;
  /** Address of the analytics store. Default: Postgres. */
  readonly analytics?: AnalyticsAddress | undefined;
  /** Connections to Redis, which the caller opens and closes. */
  readonly edge: Edge;
  /** Address of probes and metrics. Port 0 selects a free one. */
  readonly admin: { readonly host: string; readonly port: number };
  /** Maximum memory of all event streams together, in bytes. */
  readonly eventsBytesMax: number;
  readonly logger: Logger;
}

export interface IngestProcess extends Closeable {
  readonly adminUrl: string;
}

/**
 * Starts event ingestion without an API, for installations in which it must not slow down requests. Waits until Postgres is available, and
 * serves probes in the meantime. Throws if the database cannot be migrated or the port is in use.
 */
export async function startIngest(config: IngestConfig): Promise<IngestProcess> {
  const { logger: log } = config;
  let reason: WaitingReason = "starting";
  let working: Working | undefined;
  const noMetrics = new Registry();
  const admin = await startAdmin({
    ...config.admin,
    metrics: () => working?.metrics ?? noMetrics,
    notReady: () => (working === undefined ? `${reason}: ${WAITING[reason]}` : working.notReady()),
  });
  const onWaiting = (why: WaitingReason): void => {
    reason = why;
  };
  try {
    working = await untilPostgres(() => startWork(config), { log, onWaiting });
  } catch (error) {
    await admin.close();
    throw error;
  }
  const { close } = working;
  return {
    adminUrl: admin.url,
    close: async () => {
      await close();
      await atMost(300, admin.close());
    },
  };
}

interface Working extends Closeable {
  readonly metrics: Registry;
  /** Returns the reason why no events are stored, as text for people; `undefined` while events are stored. */
  notReady(): string | undefined;
}

async function startWork(config: IngestConfig): Promise<Working> {
  const { edge, logger: log } = config;
  await migrate(config.databaseUrl, {
    onBlocked: (blocked) => log.warn(blocked, "a migration did not get its locks in time; retrying"),
  });
  let isStopping = false;
  const db = createPool(config.databaseUrl, {
    applicationName: "postern-ingest",
    connectionsMax: CONNECTIONS_MAX,
    onIdleError: (error) => {
      // Ignores lost connections during shutdown, because Postgres may be shutting down too.
      if (!isStopping) log.warn({ err: error }, "lost an idle connection to Postgres");
    },
  });
  const metrics = new Registry();
  const failures = createLoopFailures(metrics);
  const nowMs = Date.now;
  const open: Closeable[] = [];
  try {
    const store = openAnalytics(config.analytics ?? {}, {
      databaseUrl: config.databaseUrl,
      db,
      nowMs,
      log,
      metrics,
      copies: true,
    });
    let workspaceIds = await listWorkspaceIds(db);
    open.push(
      startLoop({
        name: "workspaces",
        everyMs: WORKSPACES_EVERY_MS,
        log,
        failures,
        work: async () => {
          workspaceIds = await listWorkspaceIds(db);
          return false;
        },
      }),
    );
    const ingestion = await startIngestion({
      store,
      // Two readers for Postgres: one prepares the rows of a batch while Postgres stores another. ClickHouse performs best with few large
      // batches, one at a time.
      sources: store.kind === "postgres" ? [edge.events, edge.anotherReader()] : [edge.events],
      bytesMax: config.eventsBytesMax,
      workspaceIds: () => workspaceIds,
      nowMs,
      log,
      failures,
      metrics,
    });
    open.push(...ingestion.loops);
    if (store.findProblem !== undefined) {
      open.push(
        startLoop({
          name: "usage-store",
          everyMs: POLL_INTERVAL_MS,
          log,
          failures,
          work: async () => {
            await store.findProblem?.();
            return false;
          },
        }),
      );
    }
    const isWorking = () => performance.now() - ingestion.lastRoundMs() < READY_MS_MAX;
    return {
      metrics,
      notReady: () => (isWorking() ? undefined : "a store does not answer"),
      close: async () => {
        isStopping = true;
        await atMost(2500, Promise.all(open.map((loop) => loop.close())));
        await atMost(1000, ingestion.drain());
        await atMost(300, store.close());
        await atMost(300, db.end());
      },
    };
  } catch (error) {
    isStopping = true;
    await Promise.all(open.map((loop) => loop.close()));
    await db.end();
    throw error;
  }
}
