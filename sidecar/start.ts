import type { Logger } from "pino";
import { followCertificate } from "../edge/follow-certificate.ts";
import { createAdminServer } from "./admin.ts";
import { forwardUnchecked } from "./app/unchecked.ts";
import { assembleDecision, assembleExchange } from "./assemble.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMEOUTS, type SidecarConfig, TLS_LIMITS } from "./config.ts";
import { type Doors, openDoors } from "./doors/open-doors.ts";
import { Ending } from "./ending.ts";
import { FaultLog } from "./faults.ts";
import { createGate, type ExchangeParts } from "./gate/exchange.ts";
import { RefusalCounts } from "./gate/refusal-counts.ts";
import { isStillValid } from "./gate/still-valid.ts";
import { gaugesOf } from "./gauges.ts";
import { isProxy } from "./http/client-address.ts";
import { createListener, type RequestHandlers } from "./http/listener.ts";
import { watchOngoing } from "./http/ongoing.ts";
import { endServer, listen } from "./http/serve.ts";
import { type Knowledge, openKnowledge } from "./knowledge.ts";
import { exposeMetrics, Metrics } from "./metrics.ts";
import { startPodReports } from "./pod-reports.ts";
import { createProbes } from "./probes.ts";
import { judgeReadiness } from "./readiness.ts";

export interface Sidecar {
  /** For requests to the app; undefined without one. */
  readonly url: string | undefined;
  /** Of the HTTP door; undefined when it is not open. */
  readonly authorizeUrl: string | undefined;
  /** Of the gRPC door; undefined when it is not open. */
  readonly grpcUrl: string | undefined;
  readonly adminUrl: string;
  /** Drains, lets requests in flight finish for a limited time, then ends everything. The edge stays open, because the caller opened it. */
  close(): Promise<void>;
  /** For errors that reach the process itself: counted and logged like those that the gate catches. */
  noteStrayFault(error: unknown): void;
}

/**
 * Starts the gate. It listens also before the shared store or the policy is available: until then requests that need a
 * decision get 503, and `/readyz` says why. Throws when a port is not available.
 */
export async function startSidecar(config: SidecarConfig): Promise<Sidecar> {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...config.timeouts };
  const limits = { ...DEFAULT_LIMITS, ...(config.tls && TLS_LIMITS), ...config.limits };
  const checks = config.checks !== false;

  const metrics = new Metrics();
  const faults = new FaultLog(metrics, config.logger);
  const knowledge = await openKnowledge(config, timeouts);
  const refusals = new RefusalCounts(knowledge.nowMs);
  const { podsAlive } = knowledge;
  const isEnding = () => ending.hasBegun;
  const given = { config, timeouts, limits, knowledge, metrics, refusals, podsAlive, faults, isEnding };
  const decision = assembleDecision(given);
  const { onFault } = decision;
  const exchange = config.upstream === undefined ? undefined : assembleExchange(given, decision, config.upstream);
  const watch = exchange?.forwarding.upstream.watch;
  const onMalformed = (): void => metrics.observe("MALFORMED", 0);
  const server =
    exchange &&
    createListener(
      {
        ...{ answering: exchange.answering, onFault, onMalformed },
        isProxy: (ip) => isProxy(decision.policy()?.findClientAddress, ip),
        onCrowded: (protocol, done) => {
          metrics.crowded[protocol][done] += 1;
        },
      },
      { ...limits, ...timeouts },
      checks ? createGate(exchange) : withoutChecks(exchange),
      config.tls?.(),
    );
  const certificates =
    server &&
    config.tls &&
    followCertificate(server, {
      current: config.tls,
      log: config.logger,
      everyMs: timeouts.certificateMs,
    });
  let doors: Doors | undefined;
  const ending = new Ending({
    drainMs: timeouts.drainMs,
    closeIdle: () => {
      server?.closeIdle();
      doors?.closeIdle();
    },
    isAppGone: async () => {
      await watch?.look();
      return watch?.state === "away";
    },
  });
  watch?.onAway(() => server?.closeIdle());
  const { policyId, hookToken } = config;
  const readiness = () => judgeReadiness(knowledge, { policyId, checks, isEnding: ending.hasBegun, app: watch?.state });
  const gauges = gaugesOf(knowledge, { server, proxy: exchange, sink: config.edge.sink, podsAlive, readiness });
  const admin = createAdminServer({
    readiness,
    metrics: exposeMetrics(metrics, gauges),
    podEnds: hookToken === undefined ? undefined : { token: hookToken, begin: () => ending.begin() },
    probes: createProbes(config.probes ?? []),
    onFault,
  });
  const reports = startPodReports(config, { ...knowledge, refusals }, { everyMs: timeouts.reportMs, podsAlive });
  const stopWatching =
    exchange &&
    watchOngoing({
      ongoing: exchange.forwarding.ongoing,
      recheckMs: timeouts.recheckMs,
      isStillValid: (admission) => isStillValid(decision, admission).catch(stayOpen(config.logger)),
      onCut: () => {
        metrics.cut += 1;
      },
      onFault,
    });

  let serves = false;
  async function close(): Promise<void> {
    if (serves) await ending.drained();
    await knowledge.snapshot?.close();
    knowledge.follower.close();
    reports.stop();
    await certificates?.close();
    const ongoing = exchange?.forwarding.ongoing ?? [];
    await Promise.all([
      server?.close(
        timeouts.closeMs,
        () => (exchange?.forwarding.ongoing.size ?? 0) > 0,
        () => {
          for (const one of ongoing) one.cut();
        },
      ),
      doors?.close(timeouts.closeMs),
    ]);
    stopWatching?.();
    await Promise.all([endServer(admin), exchange?.forwarding.upstream.close(), leave(config, knowledge)]);
  }

  try {
    const url = await server?.listen(config.listen);
    const doorsParts = {
      ...{ decision, timeouts, limits, docsUrl: config.errorDocsUrl, logger: config.logger },
      ...{
        isEnding: () => ending.hasBegun,
        isReady: () => readiness().ready,
        turnedAway: metrics.turnedAway,
        rateLimits: metrics.rateLimits,
      },
    };
    doors = config.doors && (await openDoors(doorsParts, config.doors));
    const adminUrl = await listen(admin, config.admin);
    serves = true;
    return {
      url,
      authorizeUrl: doors?.authorizeUrl,
      grpcUrl: doors?.grpcUrl,
      adminUrl,
      close,
      noteStrayFault: faults.stray,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Without checks everything is forwarded directly, except upgrades. */
const withoutChecks = (exchange: ExchangeParts): RequestHandlers => ({
  ...createGate(exchange),
  request: forwardUnchecked(exchange.forwarding),
  expectant: undefined,
});

/** A check that failed proves nothing about the key, so the connection stays open. */
const stayOpen =
  (logger: Logger) =>
  (error: unknown): true => {
    logger.error({ err: error }, "an open connection could not be checked again");
    return true;
  };

/** Closes everything that the sidecar has opened on the shared store. */
async function leave(config: SidecarConfig, { projection, counters }: Knowledge): Promise<void> {
  const { edge, workspaceId, policyId, podId, logger } = config;
  await Promise.all([
    projection.close(),
    counters.close(),
    edge.sink.flush().catch((error: unknown) => logger.warn({ err: error }, "the last events were not sent")),
    // The other pods' reports stay; this one is not waited for when the store is away.
    edge.pods.remove({ workspaceId, policyId, podId }).catch(() => undefined),
  ]);
}
