import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { type AnalyticsAddress, openAnalytics } from "../analytics/open.ts";
import { findQueueDepth } from "../analytics/postgres/rollup-queue.ts";
import { QueryMetrics } from "../analytics/query-metrics.ts";
import { makeId } from "../core/ids.ts";
import { utcDate } from "../core/utc-date.ts";
import { DEFAULT_WORKSPACE } from "../core/workspaces/workspace.ts";
import type { Closeable } from "../edge/closeable.ts";
import { deciderJson } from "../edge/events/verification-line.ts";
import { type Certificate, followCertificate } from "../edge/follow-certificate.ts";
import { LogThrottle } from "../edge/log-throttle.ts";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";
import { openProjection } from "../edge/projection/projection.ts";
import type { DatabaseUrl } from "../postgres/pool.ts";
import { createPool } from "../postgres/pool.ts";
import { startAdminApp } from "./admin-app.ts";
import { buildApp } from "./app.ts";
import { DEFAULT_RETENTION_DAYS, type RetentionDays } from "./background/retention.ts";
import { startBackgroundWork } from "./background-work.ts";
import { createCreditService } from "./credits/postgres-credits.ts";
import { type RefillRun, runRefill } from "./credits/refill.ts";
import { SYSTEM_ACTOR } from "./db/audit.ts";
import { demandMigrated, migrate } from "./db/migrate.ts";
import { createPostgresSource } from "./db/records.ts";
import { createRelayWaker } from "./db/relay-waker.ts";
import { listWorkspaceIds } from "./db/workspaces.ts";
import type { Deps } from "./deps.ts";
import { ensureWorkspace, registerRootKey, replaceDevRootKey } from "./domain/administration/bootstrap.ts";
import { makeSignInLink, signInAddress } from "./domain/administration/sign-in-links.ts";
import type { GateCredentials } from "./gates/credentials.ts";
import { exportGauges } from "./health/gauges.ts";
import { DEGRADATIONS, type Health, PROPAGATION_BOUND_MS } from "./health/health.ts";
import { watchHealth } from "./health/watch.ts";
import { createKeyOwners } from "./keys/key-owners.ts";
import { createKeyVault, type EncryptionKey } from "./keys/key-vault.ts";
import { createRootKeyUsage } from "./keys/root-key-usage.ts";
import { atMost, prepareDrain } from "./lifecycle/shutdown.ts";
import { openStartupServer } from "./lifecycle/startup-server.ts";
import { untilPostgres, type WaitingReason, waitingAnswer } from "./lifecycle/until-postgres.ts";
import { dashboardFolder } from "./plugins/dashboard-page.ts";
import { answerReadyz } from "./plugins/health.ts";
import { createV1, V1_DOCUMENTS, type V1Settings } from "./plugins/v1/index.ts";
import { startRelay } from "./relay/relay.ts";
import { peopleDepsOf, type SignInSettings } from "./sign-in/settings.ts";

const COUNTERS_TIMEOUT_MS = 1000;
const SCRIPTS_WAIT_MS = 1000;
const EVENTS_BYTES_MAX = 256 * 1024 * 1024;

export interface ApiServerConfig {
  readonly databaseUrl: DatabaseUrl;
  /** Connections to Redis, which the caller opens and closes. */
  readonly edge: Edge;
  readonly host: string;
  /** Port of the API; 0 selects a free one. */
  readonly port: number;
  readonly logger: Logger;
  /**
   * Whether the process migrates the database. Default: true. If false, another process must migrate it; until then, this process fails to
   * start or, with `waitsForPostgres`, waits.
   */
  readonly migrates?: boolean | undefined;
  /** Address of probes, metrics and the API page. Default: the API's own address. */
  readonly admin?: { readonly host: string; readonly port: number } | undefined;
  /** Returns the current certificate; the API is then served over TLS. */
  readonly tls?: (() => Certificate) | undefined;
  /** Base URL of error types. Default: this server's own pages. */
  readonly docsUrl?: string | undefined;
  readonly region?: string | undefined;
  readonly trustedProxies?: readonly string[] | undefined;
  /** Maximum number of concurrent client connections. Default: 1,000. */
  readonly maxConnections?: number | undefined;
  /**
   * A configured root key, which is registered for the default workspace with every grant. If the setting changes, the new root key is
   * registered as well, and the previous one stays valid until it is revoked.
   */
  readonly rootKey?: string | (() => string) | undefined;
  /** Address of the analytics store. Default: Postgres. */
  readonly analytics?: AnalyticsAddress | undefined;
  /** Maximum memory of all event streams together, in bytes. Default: 256 MiB. */
  readonly eventsBytesMax?: number | undefined;
  /** Whether this process stores usage events. Default: true. If false, other processes must do so. */
  readonly ingest?: boolean | undefined;
  /** Settings of v1: whether it is served, and until when. Default: it is served without an end date. */
  readonly v1?: V1Settings | undefined;
  /** Retention of the audit log and of deleted rows, in days. Default: 90 and 30. */
  readonly retentionDays?: RetentionDays | undefined;
  /** Encryption keys for recoverable keys. The first one encrypts; all of them decrypt. Default: none, so keys are not recoverable. */
  readonly encryptionKeys?: readonly [EncryptionKey, ...EncryptionKey[]] | undefined;
  /** Lets gates obtain their Redis users from this server. If `undefined`, they cannot. */
  readonly gates?: GateCredentials | undefined;
  /** Whether the dashboard is served at `/dashboard/`. Default: true. */
  readonly dashboard?: boolean | undefined;
  /** Configures sign-in to the dashboard. */
  readonly signIn?: SignInSettings | undefined;
  /**
   * Whether `start` waits until Postgres is available, and serves probes in the meantime. Default: false; `start` then fails immediately.
   */
  readonly waitsForPostgres?: boolean | undefined;
}

export interface ApiServer {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly deps: Deps;
  /** Whether this process is the relay leader. */
  isRelaying(): boolean;
  /** Runs the refills that are due on a UTC date (`YYYY-MM-DD`). Default: today. Returns `undefined` if another process is refilling. */
  refill(today?: string): Promise<RefillRun | undefined>;
  /** For `postern dev`: creates a root key for this start, and revokes the root key of the previous start. */
  devRootKey(given: string | undefined): Promise<{ workspaceId: string; rootKey: string }>;
  /** For `postern dev`: returns a single-use URL that signs the user in to the dashboard as an admin. */
  signInAddress(): Promise<string>;
  /** Stops accepting requests, finishes those in flight, and writes pending data. */
  close(): Promise<void>;
}

/** Progress of the start, for probes. */
interface Progress {
  reason: WaitingReason;
  /** Returns the health of the server; `undefined` until the API is served. */
  health: (() => Health) | undefined;
  metrics: Registry;
}

/**
 * Starts all components of an api-server. Throws if the database cannot be migrated, if a port is in use, or, unless
 * `waitsForPostgres` is set, if the database cannot be reached.
 */
export async function start(config: ApiServerConfig): Promise<ApiServer> {
  const progress: Progress = { reason: "starting", health: undefined, metrics: new Registry() };
  const admin =
    config.admin &&
    (await startAdminApp({
      ...config.admin,
      readyz: (isVerbose) =>
        progress.health === undefined ? waitingAnswer(progress.reason) : answerReadyz(progress.health(), isVerbose),
      metrics: () => progress.metrics,
      documents: V1_DOCUMENTS,
    }));
  try {
    const server = await (config.waitsForPostgres === true
      ? startWhenReached(config, progress)
      : startOnce(config, progress));
    const close = async (): Promise<void> => {
      await server.close();
      await atMost(300, admin?.close());
    };
    return { ...server, adminUrl: admin?.url, close };
  } catch (error) {
    await admin?.close();
    throw error;
  }
}

type Started = Omit<ApiServer, "adminUrl">;

async function startWhenReached(config: ApiServerConfig, progress: Progress): Promise<Started> {
  const { host, port, docsUrl, tls, logger: log } = config;
  const startupServer = await openStartupServer({ host, port, docsUrl, tls, reason: () => progress.reason });
  const onWaiting = (reason: WaitingReason): void => {
    progress.reason = reason;
  };
  try {
    return await untilPostgres(() => startOnce(config, progress, startupServer), { log, onWaiting });
  } finally {
    await startupServer.close();
  }
}

/** Starts all components, without retries. `startupServer` holds the port until the API listens. */
async function startOnce(config: ApiServerConfig, progress: Progress, startupServer?: Closeable): Promise<Started> {
  const { logger: log } = config;
  if (config.migrates === false) await demandMigrated(config.databaseUrl);
  else {
    await migrate(config.databaseUrl, {
      onBlocked: (blocked) => log.warn(blocked, "a migration did not get its locks in time; retrying"),
    });
  }
  const db = createPool(config.databaseUrl, {
    applicationName: "postern-api-server",
    onIdleError: (error) => {
      // Ignores lost connections during shutdown, because Postgres may be shutting down too.
      if (!running.isStopping) log.warn({ err: error }, "lost an idle connection to Postgres");
    },
  });
  const running: Running = { db, loops: [], isStopping: false };
  try {
    return await startParts(config, { running, progress, startupServer });
  } catch (error) {
    await stop(running).catch(() => undefined);
    throw error;
  }
}

/** Components that are started so far, so that they can be stopped in the right order. */
interface Running {
  readonly db: Pool;
  isStopping: boolean;
  app?: FastifyInstance;
  /** Called before the server closes: drains keep-alive connections. */
  drainRequests?: () => Promise<void>;
  loops: Closeable[];
  analytics?: Closeable;
  projection?: Projection;
  counters?: EdgeCounters;
  /** Called after the last request, to write pending data. */
  drain?: () => Promise<void>;
}

async function startParts(
  config: ApiServerConfig,
  { running, progress, startupServer }: { running: Running; progress: Progress; startupServer: Closeable | undefined },
): Promise<Started> {
  const { edge, logger: log } = config;
  const { db } = running;
  const defaultWorkspaceId = await ensureWorkspace(db, DEFAULT_WORKSPACE);
  let registered: string | undefined;
  const followRootKey = async (): Promise<void> => {
    const rootKey = typeof config.rootKey === "function" ? config.rootKey() : config.rootKey;
    if (rootKey === undefined || rootKey === registered) return;
    await registerRootKey(db, { workspaceId: defaultWorkspaceId, rootKey });
    registered = rootKey;
  };
  await followRootKey();

  const metrics = new Registry();
  progress.metrics = metrics;
  const projection = await openProjection({
    source: createPostgresSource(db),
    stream: edge.stream,
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
  const analytics = openAnalytics(config.analytics ?? {}, { databaseUrl: config.databaseUrl, db, nowMs, log, metrics });
  running.analytics = analytics;
  let url = "";
  const deps: Deps = {
    db,
    projection,
    keyOwners: createKeyOwners({ db, projection }),
    wakeRelay: createRelayWaker(db),
    counters,
    peekLimits: (limits) => counters.peek(limits),
    credits,
    events: edge.sink,
    eventStreams: edge.events,
    pods: edge.pods,
    analytics,
    queryMetrics: new QueryMetrics(metrics),
    installation: {
      edge,
      isRelaying: () => relay.isLeading(),
      degradations: () => health.current().degradations.map((reason) => ({ reason, means: DEGRADATIONS[reason] })),
      encryptionKeyIds: (config.encryptionKeys ?? []).map(({ id }) => id),
      retentionDays: config.retentionDays ?? DEFAULT_RETENTION_DAYS,
      region: config.region ?? "",
      certificate: () => config.tls?.().cert,
      rollUpDepth: analytics.kind === "postgres" ? () => findQueueDepth(db) : undefined,
      usageProblem: analytics.findProblem && (() => analytics.findProblem?.() ?? Promise.resolve(undefined)),
      startedAt: Date.now(),
    },
    keyVault: config.encryptionKeys && createKeyVault(config.encryptionKeys, { randomBytes }),
    log,
    throttle: new LogThrottle(),
    ...peopleDepsOf(config.signIn ?? {}),
    rootKeyUsage: createRootKeyUsage({ nowMs: Date.now }),
    nowMs,
    randomBytes,
    // Base URL of error types. Evaluated at each use, because the default contains the server's port, which is known only once the server
    // listens.
    get docsUrl() {
      return config.docsUrl ?? url;
    },
    decidedBy: deciderJson({ region: config.region ?? "", source: "api" }),
    propagationDelayed: (workspaceId) => projection.stalenessMs(workspaceId) > PROPAGATION_BOUND_MS,
  };

  const health = await watchHealth({ databaseUrl: config.databaseUrl, edge, projection, analytics, log, metrics });
  running.loops.push(health);
  const app = await buildApp(deps, {
    health: health.current,
    metrics,
    hasPages: config.admin === undefined,
    dashboard: config.dashboard === false ? undefined : dashboardFolder(),
    certificate: config.tls?.(),
    maxConnections: config.maxConnections,
    ...(config.signIn === undefined ? {} : { signIn: config.signIn }),
    oldApi: createV1(deps, config.v1 ?? { isServed: true }),
    ...(config.gates === undefined || edge.gateUsers === undefined
      ? {}
      : { gates: { ...config.gates, users: edge.gateUsers } }),
    ...(config.trustedProxies === undefined || config.trustedProxies.length === 0
      ? {}
      : { trustedProxies: config.trustedProxies }),
  });
  running.app = app;
  running.drainRequests = prepareDrain(app.server, app.direct);
  // If Redis is unreachable, the background loop loads the scripts later.
  await atMost(SCRIPTS_WAIT_MS, edge.loadScripts());

  const relay = startRelay({
    databaseUrl: config.databaseUrl,
    writer: edge.writer,
    credits: edge.credits,
    log,
    metrics,
    newProjectionId: () => makeId("projection", randomBytes(24)),
  });
  running.loops.push(relay);
  const background = await startBackgroundWork({
    deps,
    edge,
    metrics,
    ingestTo: config.ingest === false ? undefined : analytics,
    eventsBytesMax: config.eventsBytesMax ?? EVENTS_BYTES_MAX,
    retentionDays: config.retentionDays ?? DEFAULT_RETENTION_DAYS,
    workspaceIds: await listWorkspaceIds(db),
    followRootKey,
    // Only the relay leader deletes expired users, because one process is enough.
    sweepGateUsers: async () => {
      if (config.gates !== undefined && relay.isLeading()) await edge.gateUsers?.sweep();
    },
  });
  running.loops.push(...background.loops);
  running.drain = background.drain;

  await startupServer?.close();
  await app.listen({ host: config.host, port: config.port });
  const { address, port, family } = app.server.address() as AddressInfo;
  url = `${config.tls === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  if (config.tls !== undefined) {
    const server = app.server as unknown as TlsServer;
    running.loops.push(followCertificate(server, { current: config.tls, log }));
  }
  progress.health = health.current;
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
    signInAddress: async () => {
      const administrator = { ...deps, actor: SYSTEM_ACTOR };
      const link = { name: "developer", role: "admin", workspaceId: undefined } as const;
      const { token } = await makeSignInLink(administrator, { ...link, logWorkspaceId: defaultWorkspaceId });
      return signInAddress(url, token);
    },
    close: () => {
      closing ??= stop(running);
      return closing;
    },
  };
}

/**
 * Stops accepting requests, stops background work, writes pending data and closes shared resources, in this order. Takes at most 5 s, even
 * if a database does not respond. Data that could not be written is written after the next start, except statistics, which are then lost.
 */
async function stop(running: Running): Promise<void> {
  running.isStopping = true;
  const { app, drainRequests, loops, drain, analytics, projection, counters, db } = running;
  await drainRequests?.();
  await atMost(1500, app?.close());
  app?.server.closeAllConnections();
  await atMost(1500, Promise.all(loops.map((loop) => loop.close())));
  await atMost(1000, drain?.());
  await atMost(100, Promise.all([projection?.close(), counters?.close(), analytics?.close()]));
  await atMost(300, db.end());
}
