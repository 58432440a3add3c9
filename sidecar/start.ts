import type { Logger } from "pino";
import { followCertificate } from "../edge/follow-certificate.ts";
import { createAdminServer } from "./admin.ts";
import { assembleDecision, assembleExchange } from "./assemble.ts";
import { DEFAULT_TIMEOUTS, limitsOf, type SidecarConfig } from "./config.ts";
import { createGate, type ExchangeDeps } from "./decision/exchange.ts";
import { RefusalCounts } from "./decision/rejection-counts.ts";
import { isStillValid } from "./decision/still-valid.ts";
import { type ExtAuthServers, openExtAuthServers } from "./ext-auth/open.ts";
import { type GateState, openGateState } from "./gate-state.ts";
import { gaugesOf } from "./gauges.ts";
import { isProxy } from "./http/client-address.ts";
import { watchInFlight } from "./http/in-flight.ts";
import { createListener, type RequestHandlers } from "./http/listener.ts";
import { endServer, listen } from "./http/serve.ts";
import { InternalErrorLog } from "./internal-errors.ts";
import { exposeMetrics, Metrics } from "./metrics.ts";
import { startPodReports } from "./pod-reports.ts";
import { createProbes } from "./probes.ts";
import { evaluateReadiness } from "./readiness.ts";
import { Shutdown } from "./shutdown.ts";
import { forwardUnchecked } from "./upstream/unchecked.ts";

export interface Sidecar {
  /** URL for requests to the app; `undefined` if there is no app. */
  readonly url: string | undefined;
  /** URL of the HTTP ext-auth endpoint; `undefined` if it is not open. */
  readonly authorizeUrl: string | undefined;
  /** URL of the gRPC ext-auth endpoint; `undefined` if it is not open. */
  readonly grpcUrl: string | undefined;
  readonly adminUrl: string;
  /** Drains, waits a limited time for requests in flight, and closes everything except the edge, which the caller opened. */
  close(): Promise<void>;
  /** Counts and logs an error that reached the process-wide handlers, in the same way as errors that the gate catches. */
  logStrayError(error: unknown): void;
}

/**
 * Starts the gate. The gate listens even before the shared store or the policy is available; until then, requests that require a decision
 * get 503, and `/readyz` shows why. Throws if a port is not available.
 */
export async function startSidecar(config: SidecarConfig): Promise<Sidecar> {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...config.timeouts };
  const limits = limitsOf(config);
  const checks = config.checks !== false;

  const metrics = new Metrics();
  const internalErrors = new InternalErrorLog(metrics, config.logger);
  const state = await openGateState(config, timeouts);
  const refusals = new RefusalCounts(state.nowMs);
  const { podsAlive } = state;
  const isEnding = () => ending.hasBegun;
  const given = { config, timeouts, limits, state, metrics, refusals, podsAlive, internalErrors, isEnding };
  const decision = assembleDecision(given);
  const { onInternalError } = decision;
  const exchange = config.upstream === undefined ? undefined : assembleExchange(given, decision, config.upstream);
  const watch = exchange?.forwarding.upstream.watch;
  const onMalformed = (): void => metrics.observe("MALFORMED", 0);
  const server =
    exchange &&
    createListener(
      {
        ...{ answering: exchange.answering, onInternalError, onMalformed },
        isProxy: (ip) => isProxy(decision.policy()?.findClientAddress, ip),
        onLimitReached: (protocol, done) => {
          metrics.connectionLimit[protocol][done] += 1;
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
  let extAuth: ExtAuthServers | undefined;
  const ending = new Shutdown({
    drainMs: timeouts.drainMs,
    closeIdle: () => {
      server?.closeIdle();
      extAuth?.closeIdle();
    },
    isAppUnreachable: async () => {
      await watch?.look();
      return watch?.state === "away";
    },
  });
  watch?.onUnavailable(() => server?.closeIdle());
  const { policyId, hookToken } = config;
  const readiness = () => evaluateReadiness(state, { policyId, checks, isEnding: ending.hasBegun, app: watch?.state });
  const gauges = gaugesOf(state, { server, proxy: exchange, sink: config.edge.sink, podsAlive, refusals, readiness });
  const admin = createAdminServer({
    readiness,
    metrics: exposeMetrics(metrics, gauges),
    podEnds: hookToken === undefined ? undefined : { token: hookToken, begin: () => ending.begin() },
    probes: createProbes(config.probes ?? []),
    onInternalError,
  });
  const reports = startPodReports(config, { ...state, refusals }, { everyMs: timeouts.reportMs, podsAlive });
  const stopWatching =
    exchange &&
    watchInFlight({
      inFlight: exchange.forwarding.inFlight,
      recheckMs: timeouts.recheckMs,
      isStillValid: (admission) => isStillValid(decision, admission).catch(stayOpen(config.logger)),
      onCut: () => {
        metrics.connectionsRevoked += 1;
      },
      onInternalError,
    });

  let serves = false;
  async function close(): Promise<void> {
    if (serves) await ending.drained();
    await state.snapshot?.close();
    state.follower.close();
    reports.stop();
    await certificates?.close();
    const inFlight = exchange?.forwarding.inFlight ?? [];
    await Promise.all([
      server?.close(
        timeouts.closeMs,
        () => (exchange?.forwarding.inFlight.size ?? 0) > 0,
        () => {
          for (const one of inFlight) one.cut();
        },
      ),
      extAuth?.close(timeouts.closeMs),
    ]);
    stopWatching?.();
    await Promise.all([endServer(admin), exchange?.forwarding.upstream.close(), leave(config, state)]);
  }

  try {
    const url = await server?.listen(config.listen);
    const extAuthDeps = {
      ...{ decision, timeouts, limits, docsUrl: config.errorDocsUrl, logger: config.logger },
      ...{
        isEnding: () => ending.hasBegun,
        isReady: () => readiness().ready,
        rejected: metrics.extAuthRejected,
        rateLimits: metrics.rateLimits,
      },
    };
    extAuth = config.extAuth && (await openExtAuthServers(extAuthDeps, config.extAuth));
    const adminUrl = await listen(admin, config.admin);
    serves = true;
    return {
      url,
      authorizeUrl: extAuth?.authorizeUrl,
      grpcUrl: extAuth?.grpcUrl,
      adminUrl,
      close,
      logStrayError: internalErrors.stray,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates handlers for a gate with disabled checks: they forward all requests without a decision. Upgrades are still checked. */
const withoutChecks = (exchange: ExchangeDeps): RequestHandlers => ({
  ...createGate(exchange),
  request: forwardUnchecked(exchange.forwarding),
  expectant: undefined,
});

/** Keeps the connection open if a check throws, because that proves nothing about the key. */
const stayOpen =
  (logger: Logger) =>
  (error: unknown): true => {
    logger.error({ err: error }, "an open connection could not be checked again");
    return true;
  };

/** Closes everything that the sidecar has opened in the shared store. */
async function leave(config: SidecarConfig, { projection, counters, attemptCounters }: GateState): Promise<void> {
  const { edge, workspaceId, policyId, podId, logger } = config;
  await Promise.all([
    projection.close(),
    counters.close(),
    attemptCounters.close(),
    edge.sink.flush().catch((error: unknown) => logger.warn({ err: error }, "the last events were not sent")),
    // The removal may fail while the store is unavailable; the report then expires.
    edge.pods.remove({ workspaceId, policyId, podId }).catch(() => undefined),
  ]);
}
