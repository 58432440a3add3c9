import { checkFreshness } from "../core/policies/freshness.ts";
import type { GateState } from "./gate-state.ts";
import type { AppState } from "./upstream/app-watch.ts";

export interface Readiness {
  readonly ready: boolean;
  /** Details for the response of the endpoint, which must contain no secrets. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/**
 * Returns whether the sidecar is ready: its pod is not terminating, it can decide (always, if checks are disabled), and the app is not
 * known to reject connections. `app` is `undefined` for a sidecar without an app.
 */
export function evaluateReadiness(
  { follower, projection }: Pick<GateState, "follower" | "projection">,
  {
    policyId,
    checks,
    isEnding,
    app,
  }: { policyId: string; checks: boolean; isEnding: boolean; app: AppState | undefined },
): Readiness {
  const active = follower.current;
  const stalenessMs = projection.stalenessMs();
  const freshness = active && checkFreshness(active.policy.onStale, stalenessMs);
  const policy = active && {
    id: policyId,
    generation: active.record.generation,
    version: active.record.version,
    gone: follower.isDeleted,
  };
  return {
    ready: !isEnding && app !== "away" && (!checks || (freshness !== undefined && freshness !== "Expired")),
    detail: {
      policy: policy ?? null,
      refused: follower.refused ?? null,
      freshness: freshness ?? null,
      stalenessMs: Number.isFinite(stalenessMs) ? Math.round(stalenessMs) : null,
      // Until the store responds, `stalenessMs` is the age of the snapshot.
      snapshot: projection.isRestored() ? "in use" : null,
      // A gate serves cached keys without the store, so the state of the store is reported but does not affect readiness.
      source: projection.sourceState(),
      app: app ?? null,
      closing: isEnding,
    },
  };
}
