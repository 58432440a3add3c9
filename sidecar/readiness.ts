import { judgeFreshness } from "../core/policies/freshness.ts";
import type { AppState } from "./app/app-watch.ts";
import type { Knowledge } from "./knowledge.ts";

export interface Readiness {
  readonly ready: boolean;
  /** Shown unchanged, so it must contain nothing secret. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/**
 * A sidecar is ready when it can decide (without checks there is nothing to decide) and the app takes connections, as far as
 * that is known, until its pod ends. `app` is undefined for one without an app.
 */
export function judgeReadiness(
  { follower, projection }: Pick<Knowledge, "follower" | "projection">,
  {
    policyId,
    checks,
    isEnding,
    app,
  }: { policyId: string; checks: boolean; isEnding: boolean; app: AppState | undefined },
): Readiness {
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
    ready: !isEnding && app !== "away" && (!checks || (freshness !== undefined && freshness !== "Denied")),
    detail: {
      policy: policy ?? null,
      refused: follower.refused ?? null,
      freshness: freshness ?? null,
      stalenessMs: Number.isFinite(stalenessMs) ? Math.round(stalenessMs) : null,
      // As old as `stalenessMs` says, until the store is heard of.
      snapshot: projection.isRestored() ? "in use" : null,
      // Known keys are served without the store, so it is shown and does not count.
      source: projection.sourceState(),
      app: app ?? null,
      closing: isEnding,
    },
  };
}
