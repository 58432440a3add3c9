import type { Logger } from "pino";
import { deciderJson } from "../edge/events/verification-line.ts";
import { Slots } from "../edge/slots.ts";
import { createAdminServer } from "./admin.ts";
import { Places } from "./app/places.ts";
import { openUpstream } from "./app/upstream.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMEOUTS, type SidecarConfig } from "./config.ts";
import { FaultLog } from "./faults.ts";
import { createCounting } from "./gate/counting.ts";
import { type GateParts, isStillValid } from "./gate/exchange.ts";
import { type OngoingSet, watchOngoing } from "./http/ongoing.ts";
import { PieceTurns } from "./http/piece-turns.ts";
import { makeIdSource } from "./http/request-ids.ts";
import { endServer, listen } from "./http/serve.ts";
import { answerUpstreamFailure, createGateServer } from "./http/server.ts";
import { type Knowledge, openKnowledge } from "./knowledge.ts";
import { exposeMetrics, Metrics } from "./metrics.ts";
import { startPodReports } from "./pod-reports.ts";
import { judgeReadiness } from "./readiness.ts";

export interface Sidecar {
  readonly url: string;
  readonly adminUrl: string;
  /** Lets requests under way finish for a bounded time, then ends everything. The edge stays open: it is its opener's. */
  close(): Promise<void>;
  /** For errors that reach the process itself: counted and logged, like those that the gate catches. */
  noteStrayFault(error: unknown): void;
}

/**
 * Starts the gate. It listens also when the shared store or the policy is not there yet: until then requests that need a
 * decision get 503, and `/readyz` says why. Throws when a port cannot be listened on.
 */
export async function startSidecar(config: SidecarConfig): Promise<Sidecar> {
  const { edge, workspaceId, policyId, logger } = config;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...config.timeouts };
  const limits = { ...DEFAULT_LIMITS, ...config.limits };
  const checks = config.checks !== false;

  const metrics = new Metrics();
  const faults = new FaultLog(metrics, logger);
  const knowledge = await openKnowledge(config, timeouts);
  const { projection, follower, counters, nowMs } = knowledge;
  const nextId = makeIdSource();
  const ongoing: OngoingSet = new Slots();
  let isClosing = false;

  const upstream = openUpstream(config.upstream, {
    timeouts,
    headBytesMax: limits.headBytesMax,
    connectionsMax: limits.upstreamConnectionsMax,
    addressShare: limits.addressShare,
    onFault: faults.exchange,
  });
  // Nobody waits for one: an upgraded connection stays for long.
  const upgrades = new Places({ max: limits.upgradesMax, share: limits.addressShare, waitMs: 0 });
  const gate: GateParts = {
    workspaceId,
    ...createCounting({
      projection,
      counters,
      nowMs,
      creditLoadMs: timeouts.creditLoadMs,
      onFailure: (what) => {
        metrics.counterFailures[what] += 1;
      },
    }),
    projection,
    nowMs,
    onDeparted: () => {
      metrics.departed += 1;
    },
    upstream,
    ongoing,
    upgrades,
    answerIdleMs: timeouts.answerIdleMs,
    halfClosedMs: timeouts.halfClosedMs,
    pieceTurns: new PieceTurns(faults.exchange),
    bodyLimits: {
      idleMs: timeouts.requestBodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      wholeBytesMax: limits.wholeBodyBytesMax,
    },
    drainBytesMax: limits.drainBytesMax,
    isClosing: () => isClosing,
    onUpstreamFailure: (res, failed, additions) => answerUpstreamFailure(gate, res, failed, additions),
    onUnusableAnswer: faults.unusableAnswer,
    policy: () => follower.current,
    events: edge.sink,
    decidedBy: deciderJson({ region: config.region, source: "sidecar" }),
    metrics,
    nextId,
    docsUrl: config.errorDocsUrl,
    onFault: faults.exchange,
  };

  const readiness = () => judgeReadiness(knowledge, { policyId, checks, isClosing });
  const server = createGateServer({ gate, timeouts, limits, checks });
  const admin = createAdminServer({
    readiness,
    onFault: gate.onFault,
    metrics: exposeMetrics(metrics, {
      stalenessS: () => projection.stalenessMs() / 1000,
      sourceUsable: () => projection.sourceState().usable,
      refused: () => projection.refused(),
      policyVersion: () => follower.current?.record.version ?? 0,
      policyGeneration: () => follower.current?.record.generation ?? 0,
      policyGone: () => follower.isGone,
      policyRefused: () => follower.refused !== undefined,
      ready: () => readiness().ready,
      ongoing: () => ongoing.size,
      places: () => {
        const { taken, waiting } = upstream.places;
        return { taken, waiting, upgraded: upgrades.taken };
      },
      eventsDropped: () => edge.sink.dropped(),
      overAdmitted: () => counters.overAdmitted(),
      cacheSizes: () => projection.cacheSizes(),
    }),
  });

  const reports = startPodReports(config, knowledge, timeouts.reportMs);
  const stopWatching = watchOngoing({
    ongoing,
    recheckMs: timeouts.recheckMs,
    isStillValid: (admission) => isStillValid(gate, admission).catch(stayOpen(logger)),
    onCut: () => {
      metrics.cut += 1;
    },
    onFault: gate.onFault,
  });

  async function close(): Promise<void> {
    isClosing = true;
    follower.close();
    reports.stop();
    await endServer(server, ongoing, timeouts.closeMs);
    stopWatching();
    await Promise.all([endServer(admin, new Slots(), 0), upstream.close(), leave(config, knowledge)]);
  }

  try {
    const url = await listen(server, config.listen);
    const adminUrl = await listen(admin, config.admin);
    return { url, adminUrl, close, noteStrayFault: faults.stray };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A check that fails says nothing about the key. */
const stayOpen =
  (logger: Logger) =>
  (error: unknown): true => {
    logger.error({ err: error }, "an open connection could not be checked again");
    return true;
  };

/** Ends what the sidecar has to do with the shared store. */
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
