import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { Gauge, Registry } from "prom-client";
import { makeId } from "../core/ids.ts";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Closeable, Projection } from "../edge/projection/contract.ts";
import { openProjection } from "../edge/projection/projection.ts";
import { buildApp } from "./app.ts";
import { createLoopFailures, startLoop } from "./background.ts";
import { loadRequested, writeSpentBehind } from "./credits/loops.ts";
import { createCreditService } from "./credits/postgres-credits.ts";
import { runRefill } from "./credits/refill.ts";
import type { Deps } from "./deps.ts";
import { ensureWorkspace, registerRootKey, replaceDevRootKey } from "./domain/bootstrap.ts";
import { utcDate } from "./domain/credits.ts";
import { ingestBatch, keepPartitions } from "./ingest/ingest.ts";
import type { ReadinessCheck } from "./plugins/health.ts";
import { startRelay } from "./relay/relay.ts";
import { migrate } from "./store/migrate.ts";
import { createPool } from "./store/pool.ts";
import { createPostgresSource } from "./store/records.ts";
import { listWorkspaceIds } from "./store/workspaces.ts";

/** The promise: so long a change may take to be enforced everywhere. */
export const PROPAGATION_BOUND_MS = 30_000;
/** The workspace that is there from the beginning. */
export const DEFAULT_WORKSPACE = "default";

const COUNTERS_TIMEOUT_MS = 1000;
const WORKSPACES_EVERY_MS = 1000;
const LOAD_EVERY_MS = 50;
const WRITE_BEHIND_EVERY_MS = 500;
const INGEST_EVERY_MS = 200;
const REFILL_EVERY_MS = 30_000;
const PARTITIONS_EVERY_MS = 3_600_000;

export interface ApiServerConfig {
  readonly databaseUrl: string;
  /** Opened, and closed, by whoever starts the server. */
  readonly edge: Edge;
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
  readonly logger: Logger;
  /** Where error types point; the server's own pages when left out. */
  readonly docsUrl?: string | undefined;
  readonly region?: string | undefined;
  readonly trustedProxies?: readonly string[] | undefined;
  /** A root key from outside, registered for the default workspace with every grant. */
  readonly rootKey?: string | undefined;
}

export interface ApiServer {
  readonly url: string;
  readonly deps: Deps;
  /** Whether this process is the one that relays. */
  isRelaying(): boolean;
  /** Refills what is due on a UTC date (`YYYY-MM-DD`), today when left out. undefined: another process is at it. */
  refill(today?: string): Promise<{ refilled: number } | undefined>;
  /** For `postern dev`: the root key of this start. The one that the last start made is revoked. */
  devRootKey(given: string | undefined): Promise<{ workspaceId: string; rootKey: string }>;
  /** Stops taking requests, finishes those under way, writes what is still to be written. */
  close(): Promise<void>;
}

/** Starts everything that an api-server is. Throws when the database cannot be reached or migrated, or the port is taken. */
export async function start(config: ApiServerConfig): Promise<ApiServer> {
  const { logger: log } = config;
  await migrate(config.databaseUrl);
  const db = createPool(config.databaseUrl, {
    applicationName: "postern-api-server",
    onIdleError: (error) => {
      // Postgres may well be stopping too.
      if (!running.isStopping) log.warn({ err: error }, "lost an idle connection to Postgres");
    },
  });
  const running: Running = { db, loops: [], isStopping: false };
  try {
    return await startParts(config, running);
  } catch (error) {
    await stop(running).catch(() => undefined);
    throw error;
  }
}

/** What has been started so far, to be stopped in the right order. */
interface Running {
  readonly db: Pool;
  isStopping: boolean;
  app?: FastifyInstance;
  loops: Closeable[];
  projection?: Projection;
  counters?: EdgeCounters;
  /** What is still to be written when nothing new comes in any more. */
  drain?: () => Promise<void>;
}

async function startParts(config: ApiServerConfig, running: Running): Promise<ApiServer> {
  const { edge, logger: log } = config;
  const { db } = running;
  const defaultWorkspaceId = await ensureWorkspace(db, DEFAULT_WORKSPACE);
  if (config.rootKey !== undefined) {
    await registerRootKey(db, { workspaceId: defaultWorkspaceId, rootKey: config.rootKey });
  }

  const metrics = new Registry();
  const projection = await openProjection({
    source: createPostgresSource(db),
    feed: edge.feed,
    follow: "central",
    limits: { bypassAfterMs: PROPAGATION_BOUND_MS },
  });
  running.projection = projection;
  const counters = edge.counters({ timeoutMs: COUNTERS_TIMEOUT_MS });
  running.counters = counters;
  projection.onDropped((ref) => {
    if (ref === undefined) counters.forgetDenials();
  });
  exportGauges(metrics, { db, edge, projection, counters });

  const nowMs = Date.now;
  const credits = createCreditService({ db, store: edge.credits, nowMs, log });
  let url = "";
  const deps: Deps = {
    db,
    projection,
    counters,
    credits,
    events: edge.sink,
    pods: edge.pods,
    log,
    nowMs,
    randomBytes,
    // The server's own pages, unless it is known under another address; which port it has, it learns when it listens.
    get docsUrl() {
      return config.docsUrl ?? url;
    },
    region: config.region ?? "",
    propagationDelayed: () => projection.stalenessMs() > PROPAGATION_BOUND_MS,
  };

  const app = await buildApp(deps, {
    readinessChecks: readinessChecks({ db, edge, projection }),
    metrics,
    ...(config.trustedProxies === undefined || config.trustedProxies.length === 0
      ? {}
      : { trustedProxies: config.trustedProxies }),
  });
  running.app = app;
  await keepPartitions(db, nowMs());

  const relay = startRelay({
    databaseUrl: config.databaseUrl,
    writer: edge.writer,
    credits: edge.credits,
    log,
    metrics,
    newProjectionId: () => makeId("projection", randomBytes(24)),
  });
  running.loops.push(relay);
  const background = startBackground({ deps, edge, metrics, workspaceIds: await listWorkspaceIds(db) });
  running.loops.push(...background.loops);
  running.drain = background.drain;

  await app.listen({ host: config.host, port: config.port });
  const { address, port, family } = app.server.address() as AddressInfo;
  url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  let closing: Promise<void> | undefined;
  return {
    url,
    deps,
    isRelaying: () => relay.isLeading(),
    refill: (today = utcDate(nowMs())) => runRefill(deps, { today }),
    devRootKey: async (given) => ({
      workspaceId: defaultWorkspaceId,
      rootKey: given ?? (await replaceDevRootKey(db, defaultWorkspaceId)),
    }),
    close: () => {
      closing ??= stop(running);
      return closing;
    },
  };
}

function startBackground(parts: { deps: Deps; edge: Edge; metrics: Registry; workspaceIds: readonly string[] }): {
  loops: Closeable[];
  drain: () => Promise<void>;
} {
  const { deps, edge, metrics } = parts;
  const { db, credits, nowMs, log } = deps;
  let { workspaceIds } = parts;
  let isClosing = false;
  let refilledOn: string | undefined;
  const common = { log, failures: createLoopFailures(metrics) };
  const writeBehind = () => writeSpentBehind({ db, store: edge.credits, workspaceIds });
  const ingest = () => ingestBatch({ db, events: edge.events, workspaceIds, nowMs });
  const loop = (name: string, everyMs: number, work: () => Promise<boolean | undefined>) =>
    startLoop({ name, everyMs, work, ...common });

  const refreshWorkspaces = async () => {
    workspaceIds = await listWorkspaceIds(db);
    return false;
  };
  // A workspace made a moment ago has its credits loaded at once; whatever goes wrong here, the loop does it again.
  deps.projection.onDropped((ref) => {
    if (ref?.kind === "workspace" && !isClosing) refreshWorkspaces().catch(() => undefined);
  });
  const loops: Closeable[] = [
    // Told first, because the turn of a long job under way ends only when it hears of it.
    {
      close: async () => {
        isClosing = true;
      },
    },
    loop("workspaces", WORKSPACES_EVERY_MS, refreshWorkspaces),
    loop("credit-loads", LOAD_EVERY_MS, () => loadRequested({ store: edge.credits, credits, workspaceIds })),
    loop("credit-write-behind", WRITE_BEHIND_EVERY_MS, writeBehind),
    loop("ingest", INGEST_EVERY_MS, ingest),
    loop("partitions", PARTITIONS_EVERY_MS, async () => {
      await keepPartitions(db, nowMs());
      return false;
    }),
    loop("refill", REFILL_EVERY_MS, async () => {
      const today = utcDate(nowMs());
      if (refilledOn === today) return false;
      const done = await runRefill(deps, { today, isClosing: () => isClosing });
      if (done !== undefined) {
        refilledOn = today;
        log.info({ today, ...done }, "refilled credits");
      }
      return false;
    }),
  ];
  const drain = async () => {
    await edge.sink.flush();
    while (await ingest());
    while (await writeBehind());
  };
  return { loops, drain };
}

function readinessChecks({ db, edge, projection }: { db: Pool; edge: Edge; projection: Projection }): ReadinessCheck[] {
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
        const stalenessMs = projection.stalenessMs();
        if (stalenessMs > PROPAGATION_BOUND_MS) {
          throw new Error(`changes take ${Math.round(stalenessMs / 1000)} s and more to reach the pods`);
        }
      },
    },
  ];
}

function exportGauges(
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
  gauge("postern_projection_staleness_seconds", "Age of the newest knowledge of changes", () =>
    Number.isFinite(projection.stalenessMs()) ? projection.stalenessMs() / 1000 : -1,
  );
  gauge("postern_events_dropped", "Usage events that could not be sent, since the start", () => edge.sink.dropped());
  gauge("postern_local_over_admitted", "Units admitted beyond async limits, since the start", () =>
    counters.overAdmitted(),
  );
  gauge("postern_postgres_connections", "Connections to Postgres in the pool", () => db.totalCount);
  gauge("postern_postgres_waiting", "Requests that wait for a connection to Postgres", () => db.waitingCount);
}

/**
 * No new requests, then no new work, then what is left to write, then what all of them need. Everything is over within five
 * seconds also when a store hangs: what could not be written by then is written after the next start, or was a statistic.
 */
async function stop(running: Running): Promise<void> {
  running.isStopping = true;
  const { app, loops, drain, projection, counters, db } = running;
  await atMost(2000, app?.close());
  app?.server.closeAllConnections();
  await atMost(1500, Promise.all(loops.map((loop) => loop.close())));
  await atMost(1000, drain?.());
  await atMost(100, Promise.all([projection?.close(), counters?.close()]));
  await atMost(300, db.end());
}

/** Waits for the work, but no longer than that; how it ends does not matter any more. */
async function atMost(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([tooLate, Promise.resolve(work).catch(() => undefined)]);
  clearTimeout(timer);
}
