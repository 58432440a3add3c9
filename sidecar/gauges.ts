import type { CompiledPolicy } from "../core/policies/policy.ts";
import type { Edge } from "../edge/open.ts";
import { BEFORE_RULES, type RuleCount } from "../edge/pods/contract.ts";
import type { HttpServer } from "../http/http1/server.ts";
import type { RefusalCounts } from "./decision/rejection-counts.ts";
import type { GateState } from "./gate-state.ts";
import type { Readings } from "./metrics.ts";
import type { PodsAlive } from "./pods-alive.ts";
import { sharedRequests } from "./policy/active-policy.ts";
import type { Readiness } from "./readiness.ts";
import type { ForwardDeps } from "./upstream/forward.ts";
import type { UpgradeDeps } from "./upstream/upgrade.ts";

interface ProxyDeps {
  readonly forwarding: ForwardDeps;
  readonly upgrading: UpgradeDeps;
}

function labelOf(rule: number, { rules }: CompiledPolicy): string {
  if (rule === BEFORE_RULES) return "none";
  return rule < 0 ? "default" : (rules[rule]?.name ?? String(rule + 1));
}

/** Returns functions that compute the values of gauges. They are called when Prometheus scrapes. */
export function gaugesOf(
  { projection, follower, counters, snapshot }: GateState,
  deps: {
    sink: Edge["sink"];
    server: HttpServer | undefined;
    proxy: ProxyDeps | undefined;
    podsAlive: PodsAlive;
    refusals: Pick<RefusalCounts, "all">;
    readiness: () => Readiness;
  },
): Readings {
  const { sink, server, proxy, readiness } = deps;
  return {
    stalenessS: () => projection.stalenessMs() / 1000,
    sourceUsable: () => projection.sourceState().usable,
    invalidValues: () => projection.refused(),
    policyVersion: () => follower.current?.record.version ?? 0,
    policyGeneration: () => follower.current?.record.generation ?? 0,
    policyDeleted: () => follower.isDeleted,
    policyUnsupported: () => follower.refused !== undefined,
    ready: () => readiness().ready,
    inFlight: () => proxy?.forwarding.inFlight.size ?? 0,
    connections: () => server?.open ?? { http1: 0, http2: 0 },
    upstreamRequests: () => {
      const { taken: active, waiting: queued } = proxy?.forwarding.upstream.limiter ?? { taken: 0, waiting: 0 };
      return { active, queued, upgraded: proxy?.upgrading.limiter.taken ?? 0 };
    },
    eventsDropped: () => sink.dropped(),
    sharedIdentifiers: () => sharedRequests.count,
    rejections: () => {
      const active = follower.current;
      if (active === undefined) return [];
      const named = ({ rule, ...count }: RuleCount) => ({ ...count, rule: labelOf(rule, active.policy) });
      return deps.refusals.all(active).map(named);
    },
    overAdmissions: () => counters.overAdmissions(),
    podsAlive: () => deps.podsAlive.count,
    isRestored: () => projection.isRestored(),
    snapshot: () => snapshot?.counts,
    cacheSizes: () => projection.cacheSizes(),
  };
}
