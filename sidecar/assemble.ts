import { deciderJson } from "../edge/events/verification-line.ts";
import { Places } from "../edge/places.ts";
import { Slots } from "../edge/slots.ts";
import type { FailureParts } from "./app/failures.ts";
import { openUpstream, type Upstream } from "./app/upstream.ts";
import { overHttp2 } from "./app/upstream-http2.ts";
import type { Limits, SidecarConfig, Timeouts } from "./config.ts";
import type { FaultLog } from "./faults.ts";
import { createCounting } from "./gate/counting.ts";
import type { DecisionParts } from "./gate/decide.ts";
import type { ExchangeParts } from "./gate/exchange.ts";
import { noteUncounted } from "./gate/note-uncounted.ts";
import type { RefusalCounts } from "./gate/refusal-counts.ts";
import type { VerifyParts } from "./gate/verify.ts";
import type { AnswerParts } from "./http/answering.ts";
import type { OngoingSet } from "./http/ongoing.ts";
import { PieceTurns } from "./http/piece-turns.ts";
import { makeIdSource } from "./http/request-ids.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Metrics } from "./metrics.ts";
import type { PodsAlive } from "./pods-alive.ts";

interface Given {
  readonly config: SidecarConfig;
  readonly timeouts: Timeouts;
  readonly limits: Limits;
  readonly knowledge: Knowledge;
  readonly metrics: Metrics;
  readonly refusals: RefusalCounts;
  readonly podsAlive: PodsAlive;
  readonly faults: FaultLog;
  /** Whether the pod ends, so that each answer is the last of its connection. */
  readonly isEnding: () => boolean;
}

/** Assembles what every decision needs, the same for the proxy and for the doors. */
export function assembleDecision(given: Given): DecisionParts {
  const { config, knowledge, metrics, refusals, faults } = given;
  return {
    policy: () => knowledge.follower.current,
    verifying: assembleVerification(given),
    recording: {
      events: config.edge.sink,
      decidedBy: deciderJson({ region: config.region, source: "sidecar", appId: config.policyId }),
    },
    nextId: makeIdSource(),
    metrics,
    refusals,
    onFault: faults.exchange,
  };
}

/** Assembles the parts of an exchange with the app at `upstream`, each with only what it needs. */
export function assembleExchange(given: Given, decision: DecisionParts, upstreamUrl: string): ExchangeParts {
  const { timeouts, limits, metrics, faults } = given;
  const { onFault, nextId } = decision;
  const ongoing: OngoingSet = new Slots();
  const { headersMs, answerIdleMs, halfClosedMs } = timeouts;
  const { headBytesMax, upstreamConnectionsMax: connectionsMax, addressShare } = limits;
  const { connectMs, bodyIdleMs, eventsIdleMs } = timeouts;
  const waits = { connectMs, headersMs, bodyIdleMs, eventsIdleMs };
  const onUnrequested = faults.unrequestedBytes;
  const upstreamOptions = { ...waits, headBytesMax, connectionsMax, addressShare, onFault, onUnrequested };
  const pool = openUpstream(upstreamUrl, upstreamOptions);
  const speaksHttp2 = given.config.upstreamProtocol === "h2c";
  const upstream = speaksHttp2 ? overHttp2(pool, upstreamOptions) : pool;
  const answering = assembleAnswers(given, upstream, nextId);
  const failing: FailureParts = {
    answering,
    counts: metrics.upstreamFailures,
    onUnusableAnswer: faults.unusableAnswer,
  };
  const bodies = {
    pieceTurns: answering.pieceTurns,
    bodyLimits: {
      idleMs: timeouts.requestBodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      wholeBytesMax: limits.wholeBodyBytesMax,
    },
  };
  // Of an app without HTTP/2 a client would only say that it is a call.
  const callBodies = speaksHttp2
    ? { ...bodies, bodyLimits: { ...bodies.bodyLimits, idleMs: eventsIdleMs, bytesPerSecondMin: 0 } }
    : bodies;
  // Upgrades do not wait for a place, because an upgraded connection lasts long.
  const upgradePlaces = new Places({ max: limits.upgradesMax, share: addressShare, waitMs: 0 });
  return {
    ...decision,
    answering,
    forwarding: { upstream, ongoing, bodies, callBodies, failing, answerIdleMs, halfClosedMs },
    upgrading: { upstream, places: upgradePlaces, ongoing, failing, answerIdleMs, waits: timeouts, onFault },
  };
}

const assembleAnswers = (
  { config, faults, isEnding }: Given,
  upstream: Upstream,
  nextId: () => string,
): AnswerParts => ({
  docsUrl: config.errorDocsUrl,
  pieceTurns: new PieceTurns(faults.exchange),
  nextId,
  // While the app is away another pod can do more for the client.
  isClosing: () => isEnding() || upstream.watch.state === "away",
});

function assembleVerification({ config, timeouts, knowledge, metrics, podsAlive }: Given): VerifyParts {
  const { projection, counters, nowMs } = knowledge;
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
    onDeparted: () => {
      metrics.departed += 1;
    },
  };
}
