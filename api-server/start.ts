import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { makeId } from "../core/ids.ts";
import { utcDate } from "../core/utc-date.ts";
import { DEFAULT_WORKSPACE } from "../core/workspaces/workspace-name.ts";
import type { Closeable } from "../edge/closeable.ts";
import { deciderJson } from "../edge/events/verification-line.ts";
import { type Certificate, followCertificate } from "../edge/follow-certificate.ts";
import type { Edge, EdgeCounters } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";
import { openProjection } from "../edge/projection/projection.ts";
import { Rarely } from "../edge/rarely.ts";
import { startAdminApp } from "./admin-app.ts";
import { type AnalyticsAddress, openAnalytics } from "./analytics/open.ts";
import { findQueueDepth } from "./analytics/postgres/rollup-queue.ts";
import { QueryMetrics } from "./analytics/query-metrics.ts";
import { buildApp } from "./app.ts";
import { atMost } from "./at-most.ts";
import { startBackgroundWork } from "./background-work.ts";
import { createCreditService } from "./credits/postgres-credits.ts";
import { type RefillRun, runRefill } from "./credits/refill.ts";
import { dashboardFolder } from "./dashboard-folder.ts";
import type { Deps } from "./deps.ts";
import { ensureWorkspace, registerRootKey, replaceDevRootKey } from "./domain/administration/bootstrap.ts";
import { makeSignInLink, signInAddress } from "./domain/administration/sign-in-links.ts";
import { prepareDrain } from "./drain.ts";
import type { GateCredentials } from "./gates/credentials.ts";
import { exportGauges } from "./gauges.ts";
import { DEGRADATIONS, type Health, PROPAGATION_BOUND_MS } from "./health.ts";
import { watchHealth } from "./health-watch.ts";
import { createKeyHomes } from "./key-homes.ts";
import { createKeyVault, type EncryptionKey } from "./key-vault.ts";
import { openLobby } from "./lobby.ts";
import type { V1Settings } from "./plugins/front-v1.ts";
import { answerReadyz } from "./plugins/health.ts";
import { startRelay } from "./relay/relay.ts";
import { DEFAULT_RETENTION_DAYS, type RetentionDays } from "./retention.ts";
import { createRootKeyUses } from "./root-key-uses.ts";
import type { SignInSettings } from "./sign-in/settings.ts";
import { SYSTEM_ACTOR } from "./store/audit.ts";
import type { DatabaseUrl } from "./store/database-url.ts";
import { demandMigrated, migrate } from "./store/migrate.ts";
import { createPool } from "./store/pool.ts";
import { createPostgresSource } from "./store/records.ts";
import { createRelayWaker } from "./store/relay-waker.ts";
import { listWorkspaceIds } from "./store/workspaces.ts";
import { untilPostgres, type WaitingReason, waitingAnswer } from "./until-postgres.ts";

const COUNTERS_TIMEOUT_MS = 1000;
const SCRIPTS_WAIT_MS = 1000;
const EVENTS_BYTES_MAX = 256 * 1024 * 1024;

export interface ApiServerConfig {
  readonly databaseUrl: DatabaseUrl;
  /** Opened and closed by the caller. */
  readonly edge: Edge;
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
  readonly logger: Logger;
  /** Whether it migrates the database; it does when left out. Else it refuses, or waits for, a database that another process has to migrate. */
  readonly migrates?: boolean | undefined;
  /** For probes, metrics and the page that shows the API; they are at the API's own address when left out. */
  readonly admin?: { readonly host: string; readonly port: number } | undefined;
  /** Serves the API by TLS, with the certificate of each moment. */
  readonly tls?: (() => Certificate) | undefined;
  /** Base URL of error types; the server's own pages when left out. */
  readonly docsUrl?: string | undefined;
  readonly region?: string | undefined;
  readonly trustedProxies?: readonly string[] | undefined;
  /**
   * A configured root key, registered for the default workspace with every grant. When it changes, the new one is registered too, and
   * the one before stays until it is revoked.
   */
  readonly rootKey?: string | (() => string) | undefined;
  /** Where usage events are kept: in Postgres when left out. */
  readonly analytics?: AnalyticsAddress | undefined;
  /** Memory that all event streams together may use; 256 MiB when left out. */
  readonly eventsBytesMax?: number | undefined;
  /** Whether it stores usage events too; true when left out. Without, other processes must do so. */
  readonly ingest?: boolean | undefined;
  /** Whether v1 is served, and until when; left out: it is, and that is not decided. */
  readonly v1?: V1Settings | undefined;
  /** For how many days the audit log and deleted rows are kept; 90 and 30 when left out. */
  readonly retentionDays?: RetentionDays | undefined;
  /** For recoverable keys: the first one encrypts, all decrypt. None when left out. */
  readonly encryptionKeys?: readonly [EncryptionKey, ...EncryptionKey[]] | undefined;
  /** For gates that get their users of Redis from this server; none do when left out. */
  readonly gates?: GateCredentials | undefined;
  /** Whether the dashboard is served at `/dashboard/`; true when left out. */
  readonly dashboard?: boolean | undefined;
  /** How people sign in to the dashboard. */
  readonly signIn?: SignInSettings | undefined;
  /** Whether it waits for a Postgres that is away, and answers probes meanwhile; it fails at once when left out. */
  readonly waitsForPostgres?: boolean | undefined;
}

export interface ApiServer {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly deps: Deps;
  /** Whether this process is the relay's leader. */
  isRelaying(): boolean;
  /** Refills what is due on a UTC date (`YYYY-MM-DD`), today when left out. undefined: another process is refilling. */
  refill(today?: string): Promise<RefillRun | undefined>;
  /** For `postern dev`: the root key of this start. That of the previous start is revoked. */
  devRootKey(given: string | undefined): Promise<{ workspaceId: string; rootKey: string }>;
  /** For `postern dev`: an address that signs its user in to the dashboard as an admin, once. */
  signInAddress(): Promise<string>;
  /** Stops accepting requests, finishes those in flight, writes what is left to write. */
  close(): Promise<void>;
}

/** What is known of the start from outside, for probes. */
interface Progress {
  reason: WaitingReason;
  /** undefined until the API is served. */
  health: (() => Health) | undefined;
  metrics: Registry;
}

/**
 * Starts all parts of an api-server. Throws when the database cannot be migrated or a port is taken; and when the database cannot
 * be reached, unless it waits for it.
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
  const lobby = await openLobby({ host, port, docsUrl, tls, reason: () => progress.reason });
  const onWaiting = (reason: WaitingReason): void => {
    progress.reason = reason;
  };
  try {
    return await untilPostgres(() => startOnce(config, progress, lobby), { log, onWaiting });
  } finally {
    await lobby.close();
  }
}

/** `lobby` has the port until this listens. */
async function startOnce(config: ApiServerConfig, progress: Progress, lobby?: Closeable): Promise<Started> {
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
      // Postgres may be shutting down too.
      if (!running.isStopping) log.warn({ err: error }, "lost an idle connection to Postgres");
    },
  });
  const running: Running = { db, loops: [], isStopping: false };
  try {
    return await startParts(config, { running, progress, lobby });
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
  /** Before the server closes: lets clients leave their kept connections. */
  drainRequests?: () => Promise<void>;
  loops: Closeable[];
  analytics?: Closeable;
  projection?: Projection;
  counters?: EdgeCounters;
  /** Writes what is left when no new requests arrive. */
  drain?: () => Promise<void>;
}

async function startParts(
  config: ApiServerConfig,
  { running, progress, lobby }: { running: Running; progress: Progress; lobby: Closeable | undefined },
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
  const analytics = openAnalytics(config.analytics ?? {}, { databaseUrl: config.databaseUrl, db, nowMs, log, metrics });
  running.analytics = analytics;
  let url = "";
  const deps: Deps = {
    db,
    projection,
    keyHomes: createKeyHomes({ db, projection }),
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
      usageTrouble: analytics.trouble && (() => analytics.trouble?.() ?? Promise.resolve(undefined)),
      startedAt: Date.now(),
    },
    keyVault: config.encryptionKeys && createKeyVault(config.encryptionKeys, { randomBytes }),
    log,
    rarely: new Rarely(),
    rootKeyUses: createRootKeyUses({ nowMs: Date.now }),
    nowMs,
    randomBytes,
    // By default the server's own pages; its port is known only when it listens.
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
    ...(config.signIn === undefined ? {} : { signIn: config.signIn }),
    ...(config.v1 === undefined ? {} : { v1: config.v1 }),
    ...(config.gates === undefined || edge.gateUsers === undefined
      ? {}
      : { gates: { ...config.gates, users: edge.gateUsers } }),
    ...(config.trustedProxies === undefined || config.trustedProxies.length === 0
      ? {}
      : { trustedProxies: config.trustedProxies }),
  });
  running.app = app;
  running.drainRequests = prepareDrain(app.server, app.direct);
  // If the store is unreachable, the loop for scripts loads them later.
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
    // One process is enough, and the relay's leader is one.
    sweepGateUsers: async () => {
      if (config.gates !== undefined && relay.isLeading()) await edge.gateUsers?.sweep();
    },
  });
  running.loops.push(...background.loops);
  running.drain = background.drain;

  await lobby?.close();
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
 * Stops requests, then background work, then writes what is left, then closes what all of them use. It ends within five
 * seconds also when a store hangs: what could not be written by then is written after the next start, or was only statistics.
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
