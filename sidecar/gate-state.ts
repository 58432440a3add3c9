import type { EdgeCounters } from "../edge/open.ts";
import type { Projection } from "../edge/projection/contract.ts";
import { openProjection } from "../edge/projection/projection.ts";
import { cacheLimits } from "./cache-limits.ts";
import type { SidecarConfig, Timeouts } from "./config.ts";
import type { PodsAlive } from "./pods-alive.ts";
import { followPolicy, type PolicyFollower } from "./policy/follower.ts";
import type { KeptSnapshot } from "./snapshot/snapshot.ts";

/** The gate's copy of the data in the shared store (the records, including the policy), and the counters. */
export interface GateState {
  readonly projection: Projection;
  readonly follower: PolicyFollower;
  readonly counters: EdgeCounters;
  /** Counters of failed attempts. They are separate because clients choose their identifiers, and so could evict other counters. */
  readonly attemptCounters: EdgeCounters;
  /** Returns the time of the shared store, integer Unix ms. Until this time is known, the pod's own clock is used. */
  readonly nowMs: () => number;
  readonly snapshot: KeptSnapshot | undefined;
  readonly podsAlive: PodsAlive;
}

/** Maximum wait for the shared store at startup after a snapshot was restored. A reachable store responds in less time. */
export const RESTORED_WAIT_MS = 100;

export async function openGateState(config: SidecarConfig, timeouts: Timeouts): Promise<GateState> {
  const { edge, workspaceId, policyId, logger } = config;
  const restored = config.snapshot?.restored;
  const projection = await openProjection({
    source: edge.source,
    stream: edge.stream,
    follow: { workspaceId },
    limits: cacheLimits(config.cache),
    restored,
    waitMs: restored && RESTORED_WAIT_MS,
  });
  const follower = followPolicy({ projection, workspaceId, policyId, logger });
  const counters = edge.counters({ timeoutMs: timeouts.counterMs });
  const attemptCounters = edge.counters({ timeoutMs: timeouts.counterMs });
  projection.onDropped((ref) => {
    // Called with `undefined` if the complete cache is invalid. The counters may then have been rolled back too.
    if (ref === undefined) counters.forgetDenials();
  });
  // Truncates the estimated store time, because compared, counted and recorded times are integer milliseconds.
  const nowMs = (): number => Math.trunc(edge.stream.storeNowMs() ?? restored?.storeNowMs() ?? Date.now());
  const podsAlive: PodsAlive = { count: restored?.podsAlive ?? 0 };
  const isEnforced = (): boolean => !follower.isDeleted && follower.refused === undefined;
  const policy = () => (isEnforced() ? follower.current?.record : undefined);
  const snapshot = config.snapshot?.keep({ projection, policy, storeNowMs: nowMs, podsAlive: () => podsAlive.count });
  return { projection, follower, counters, attemptCounters, nowMs, snapshot, podsAlive };
}
