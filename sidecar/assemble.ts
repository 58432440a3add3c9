import { ConcurrencyLimiter } from "../edge/concurrency-limiter.ts";
import { deciderJson } from "../edge/events/verification-line.ts";
import { Slots } from "../edge/slots.ts";
import type { Limits, SidecarConfig, Timeouts } from "./config.ts";
import { createCounting } from "./decision/counting.ts";
import type { DecisionDeps } from "./decision/decide.ts";
import type { ExchangeDeps } from "./decision/exchange.ts";
import { FailedAttempts } from "./decision/failed-attempts.ts";
import { noteUncounted } from "./decision/record-uncounted.ts";
import type { RefusalCounts } from "./decision/rejection-counts.ts";
import type { VerifyDeps } from "./decision/verify.ts";
import type { GateState } from "./gate-state.ts";
import type { InFlightSet } from "./http/in-flight.ts";
import { ReadScheduler } from "./http/read-scheduler.ts";
import { makeIdSource } from "./http/request-ids.ts";
import type { ResponseDeps } from "./http/responding.ts";
import type { InternalErrorLog } from "./internal-errors.ts";
import type { Metrics } from "./metrics.ts";
import type { PodsAlive } from "./pods-alive.ts";
import type { FailureDeps } from "./upstream/failures.ts";
import { openUpstream, type Upstream } from "./upstream/upstream.ts";
import { overHttp2 } from "./upstream/upstream-http2.ts";

interface Given {
  readonly config: SidecarConfig;
  readonly timeouts: Timeouts;
  readonly limits: Limits;
  readonly state: GateState;
  readonly metrics: Metrics;
  readonly refusals: RefusalCounts;
  readonly podsAlive: PodsAlive;
  readonly internalErrors: InternalErrorLog;
  /** Returns whether the pod is terminating; if so, connections close after their current response. */
  readonly isEnding: () => boolean;
}

/** Assembles the dependencies of a decision, which the proxy and the ext-auth endpoints share. */
export function assembleDecision(given: Given): DecisionDeps {
  const { config, state, metrics, refusals, internalErrors } = given;
  return {
    policy: () => state.follower.current,
    verifying: assembleVerification(given),
    recording: {
      events: config.edge.sink,
      decidedBy: deciderJson({ region: config.region, source: "sidecar", appId: config.policyId }),
    },
    attempts: new FailedAttempts({
      counters: state.attemptCounters,
      workspaceId: config.workspaceId,
      nowMs: state.nowMs,
      onInternalError: internalErrors.exchange,
    }),
    nextId: makeIdSource(),
    metrics,
    refusals,
    onInternalError: internalErrors.exchange,
  };
}

/** Assembles the dependencies of an exchange with the app at `upstreamUrl`. */
export function assembleExchange(given: Given, decision: DecisionDeps, upstreamUrl: string): ExchangeDeps {
  const { timeouts, limits, metrics, internalErrors } = given;
  const { onInternalError, nextId } = decision;
  const inFlight: InFlightSet = new Slots();
  const { headersMs, responseReadMs, halfClosedMs } = timeouts;
  const { headBytesMax, upstreamConnectionsMax: connectionsMax, addressShare } = limits;
  const { connectMs, bodyIdleMs, eventsIdleMs } = timeouts;
  const waits = { connectMs, headersMs, bodyIdleMs, eventsIdleMs };
  const onUnrequested = internalErrors.unrequestedBytes;
  const upstreamOptions = { ...waits, headBytesMax, connectionsMax, addressShare, onInternalError, onUnrequested };
  const pool = openUpstream(upstreamUrl, upstreamOptions);
  const speaksHttp2 = given.config.upstreamProtocol === "h2c";
  const upstream = speaksHttp2 ? overHttp2(pool, upstreamOptions) : pool;
  const answering = assembleResponses(given, upstream, nextId);
  const failing: FailureDeps = {
    answering,
    counts: metrics.upstreamFailures,
    onUnusableResponse: internalErrors.unusableResponse,
  };
  const bodies = {
    readScheduler: answering.readScheduler,
    bodyLimits: {
      idleMs: timeouts.requestBodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      bufferedBytesMax: limits.bufferedBodyBytesMax,
    },
  };
  // Any client can set a gRPC content type to obtain the longer timeouts, so they apply only if the app speaks HTTP/2.
  const callBodies = speaksHttp2
    ? { ...bodies, bodyLimits: { ...bodies.bodyLimits, idleMs: eventsIdleMs, bytesPerSecondMin: 0 } }
    : bodies;
  // Limits upgraded connections. An upgrade does not wait for a slot, because upgraded connections may keep all slots for hours.
  const upgradeLimiter = new ConcurrencyLimiter({ max: limits.upgradesMax, share: addressShare, waitMs: 0 });
  return {
    ...decision,
    answering,
    forwarding: { upstream, inFlight, bodies, callBodies, failing, responseReadMs, halfClosedMs },
    upgrading: {
      upstream,
      limiter: upgradeLimiter,
      inFlight,
      failing,
      responseReadMs,
      waits: timeouts,
      onInternalError,
    },
  };
}

const assembleResponses = (
  { config, internalErrors, isEnding }: Given,
  upstream: Upstream,
  nextId: () => string,
): ResponseDeps => ({
  docsUrl: config.errorDocsUrl,
  readScheduler: new ReadScheduler(internalErrors.exchange),
  nextId,
  // Closes the client's connection while the app is unreachable, because the client's next connection may reach another pod.
  isClosing: () => isEnding() || upstream.watch.state === "away",
});

function assembleVerification({ config, timeouts, state, metrics, podsAlive }: Given): VerifyDeps {
  const { projection, counters, nowMs } = state;
  const note = noteUncounted(config.logger);
  const counting = createCounting({
    projection,
    counters,
    nowMs,
    podsAlive: () => podsAlive.count,
    creditLoadMs: timeouts.creditLoadMs,
    onFailure: (what, done, cause) => {
      metrics.counterFailures[what] += 1;
      note(what, done, cause);
    },
  });
  return {
    ...counting,
    projection,
    workspaceId: config.workspaceId,
    nowMs,
    onStaleDecision: () => {
      metrics.staleDecisions += 1;
    },
  };
}
