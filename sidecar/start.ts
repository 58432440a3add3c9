import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { judgeFreshness } from "../core/policies/freshness.ts";
import { deciderJson } from "../edge/events/verification-line.ts";
import type { PodReport } from "../edge/pods/contract.ts";
import type { Projection } from "../edge/projection/contract.ts";
import { openProjection } from "../edge/projection/projection.ts";
import { Rarely } from "../edge/rarely.ts";
import { Slots } from "../edge/slots.ts";
import { createAdminServer, type Readiness } from "./admin.ts";
import { Places } from "./app/places.ts";
import { openUpstream } from "./app/upstream.ts";
import { type Address, DEFAULT_LIMITS, DEFAULT_TIMEOUTS, type SidecarConfig } from "./config.ts";
import { createCounting } from "./gate/counting.ts";
import { type GateParts, isStillValid } from "./gate/exchange.ts";
import { type OngoingSet, watchOngoing } from "./http/ongoing.ts";
import { PieceTurns } from "./http/piece-turns.ts";
import { makeIdSource } from "./http/request-ids.ts";
import { answerUpstreamFailure, createGateServer } from "./http/server.ts";
import { exposeMetrics, Metrics } from "./metrics.ts";
import { startPodReports } from "./pod-reports.ts";
import { followPolicy, type PolicyFollower } from "./policy/follower.ts";

export interface Sidecar {
  readonly url: string;
  readonly adminUrl: string;
  /** Lets requests under way finish for a bounded time, then ends everything. The edge stays open: it is its opener's. */
  close(): Promise<void>;
  /** For errors that reach the process itself: counted and logged, like those that the gate catches. */
  noteStrayFault(error: unknown): void;
}

const FAULT_MESSAGES = {
  exchange: "a request or connection failed by a fault of the gate, and was ended",
  stray: "an error was caught by nothing else; the gate goes on",
} as const;

/**
 * Starts the gate. It listens also when the shared store or the policy is not there yet: until then requests that need a
 * decision get 503, and `/readyz` says why. Throws when a port cannot be listened on.
 */
export async function startSidecar(config: SidecarConfig): Promise<Sidecar> {
  const { edge, workspaceId, policyId, podId, logger } = config;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...config.timeouts };
  const limits = { ...DEFAULT_LIMITS, ...config.limits };
  const checks = config.checks !== false;

  // The estimate has fractions; times that are compared, counted by and recorded are whole milliseconds.
  const nowMs = (): number => Math.trunc(edge.feed.storeNowMs() ?? Date.now());
  const metrics = new Metrics();
  const nextId = makeIdSource();
  const ongoing: OngoingSet = new Slots();
  let isClosing = false;

  const projection = await openProjection({ source: edge.source, feed: edge.feed, follow: { workspaceId } });
  const follower = followPolicy({ projection, workspaceId, policyId, logger });
  const counters = edge.counters({ timeoutMs: timeouts.counterMs, extraPoll: true });
  projection.onDropped((ref) => {
    // Everything was dropped: the store may have gone back in time, and counters with it.
    if (ref === undefined) counters.forgetDenials();
  });

  const rarely = new Rarely();
  const noteFault = (where: "exchange" | "stray", error: unknown, requestId?: string): void => {
    metrics.faults[where] += 1;
    const faults = rarely.note(where);
    if (faults !== undefined) logger.error({ err: error, requestId, faults }, FAULT_MESSAGES[where]);
  };

  const upstream = openUpstream(config.upstream, {
    timeouts,
    headBytesMax: limits.headBytesMax,
    connectionsMax: limits.upstreamConnectionsMax,
    addressShare: limits.addressShare,
    onFault: (error) => noteFault("exchange", error),
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
    pieceTurns: new PieceTurns((error) => noteFault("exchange", error)),
    bodyLimits: {
      idleMs: timeouts.requestBodyIdleMs,
      bytesPerSecondMin: limits.bodyBytesPerSecondMin,
      wholeBytesMax: limits.wholeBodyBytesMax,
    },
    drainBytesMax: limits.drainBytesMax,
    isClosing: () => isClosing,
    onUpstreamFailure: (res, failed, additions) => answerUpstreamFailure(gate, res, failed, additions),
    onUnusableAnswer: (why, requestId) => {
      const answers = rarely.note(why);
      if (answers !== undefined) logger.warn({ why, requestId, answers }, "an answer of the app cannot be passed on");
    },
    policy: () => follower.current,
    events: edge.sink,
    decidedBy: deciderJson({ region: config.region, source: "sidecar" }),
    metrics,
    nextId,
    docsUrl: config.errorDocsUrl,
    onFault: (error, requestId) => noteFault("exchange", error, requestId),
  };

  const readiness = () => judgeReadiness({ policyId, follower, projection, checks, isClosing });
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

  const reports = startPodReports({
    pods: edge.pods,
    everyMs: timeouts.reportMs,
    logger,
    read: () => describePod({ workspaceId, policyId, podId, follower, projection }),
  });
  follower.onChange(() => reports.reportNow());

  const stopWatching = watchOngoing({
    ongoing,
    recheckMs: timeouts.recheckMs,
    isStillValid: (admission) =>
      isStillValid(gate, admission).catch((error: unknown) => {
        logger.error({ err: error }, "an open connection could not be checked again");
        return true;
      }),
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
    await Promise.all([
      endServer(admin, new Slots(), 0),
      upstream.close(),
      projection.close(),
      counters.close(),
      edge.sink.flush().catch((error: unknown) => logger.warn({ err: error }, "the last events were not sent")),
      // The other pods' reports stay; nobody waits for this one when the store is away.
      edge.pods.remove({ workspaceId, policyId, podId }).catch(() => undefined),
    ]);
  }

  try {
    const url = await listen(server, config.listen);
    const adminUrl = await listen(admin, config.admin);
    return { url, adminUrl, close, noteStrayFault: (error) => noteFault("stray", error) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Ready is who can decide. Without checks there is nothing to decide. */
function judgeReadiness(parts: {
  policyId: string;
  follower: PolicyFollower;
  projection: Pick<Projection, "stalenessMs" | "sourceState">;
  checks: boolean;
  isClosing: boolean;
}): Readiness {
  const { policyId, follower, projection, checks, isClosing } = parts;
  const inForce = follower.current;
  const stalenessMs = projection.stalenessMs();
  const freshness = inForce && judgeFreshness(inForce.policy.onStale, stalenessMs);
  const policy = inForce && {
    id: policyId,
    generation: inForce.record.generation,
    version: inForce.record.version,
    gone: follower.isGone,
  };
  return {
    ready: !isClosing && (!checks || (freshness !== undefined && freshness !== "Denied")),
    detail: {
      policy: policy ?? null,
      refused: follower.refused ?? null,
      freshness: freshness ?? null,
      stalenessMs: Number.isFinite(stalenessMs) ? Math.round(stalenessMs) : null,
      // Known keys are served without it, so it does not decide; but who looks shall see it.
      source: projection.sourceState(),
      closing: isClosing,
    },
  };
}

/** What is reported of this pod; undefined while it has met no policy. */
function describePod(parts: {
  workspaceId: string;
  policyId: string;
  podId: string;
  follower: PolicyFollower;
  projection: Pick<Projection, "stalenessMs">;
}): PodReport | undefined {
  const { follower, projection, ...pod } = parts;
  const { current, refused } = follower;
  if (current === undefined && refused === undefined) return undefined;
  const { generation, version } = current?.record ?? { generation: 0, version: 0 };
  const report = { ...pod, generation, version, stalenessMs: projection.stalenessMs() };
  if (refused === undefined) return report;
  return { ...report, refused: { version: refused.version ?? 0, reason: refused.reason } };
}

async function listen(server: Server, { host, port }: Address): Promise<string> {
  server.listen(port, host);
  // Rejects with the `error` event.
  await once(server, "listening");
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
}

const CLOSE_LOOK_MS = 20;

/** Stops accepting, waits for what is under way for `graceMs`, then cuts it off. */
async function endServer(server: Server, ongoing: OngoingSet, graceMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const giveUpAt = performance.now() + graceMs;
  while (ongoing.size > 0 && performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, CLOSE_LOOK_MS));
    server.closeIdleConnections();
  }
  for (const one of ongoing) one.cut();
  // An answer of the last moment may still be on its way out of a connection that Node has not called idle yet.
  const cutOff = setTimeout(() => server.closeAllConnections(), ongoing.size > 0 ? 0 : CLOSE_LOOK_MS * 5);
  await closed;
  clearTimeout(cutOff);
}
