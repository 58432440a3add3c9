import type { ManifestObject } from "../../source/contract.ts";
import { competitorConflict } from "../claims.ts";
import { CONFLICT_REQUEUE_MS, type FurtherCondition, type Result, ready, type Verdict } from "../plan.ts";
import { bypassable } from "./bypassable.ts";
import { enforced, paceOf, toDataPlaneStatus } from "./enforced.ts";
import { type NetworkAction, networkActions, networkConflict } from "./network.ts";
import type { ObservedPolicy } from "./observed.ts";
import { ofSidecars } from "./sidecars.ts";

/* Computes the status of a stored policy, and the changes to its NetworkPolicy. Pure. */

/** Requeue interval while the operator cannot tell yet whether a sidecar is stale. */
const OPEN_MS = 2_000;

/** Returns the status of a policy whose stored state matches its manifest, and the actions on its NetworkPolicy. */
export function reportPolicy(observed: ObservedPolicy): Result & { readonly actions: readonly NetworkAction[] } {
  const { stored } = observed;
  const active = enforced(stored?.dataPlane, observed);
  const sidecars = ofSidecars(observed);
  // A policy may become Stale as time passes, even if the reports do not change.
  const isOpen = sidecars.some(({ type, status: known }) => type === "Stale" && known === "Unknown");
  const conflict = networkConflict(observed);
  return {
    actions: networkActions(observed),
    verdict: conflict ?? ready(`The policy is stored as ${stored?.policyId ?? ""}.`),
    status: policyStatusOf(observed),
    conditions: [ACCEPTED, active, bypassable(observed), ...sidecars],
    seenAtMs: observed.seenAtMs,
    pace: paceOf(active, observed) ?? (isOpen ? { soonMs: OPEN_MS, sinceMs: observed.nowMs } : undefined),
    ...(isOpen ? { requeueAfterMs: OPEN_MS } : conflict === undefined ? {} : { requeueAfterMs: CONFLICT_REQUEUE_MS }),
  };
}

/** Returns the status fields that follow from the stored policy. */
export function policyStatusOf(observed: ObservedPolicy): object {
  const { stored } = observed;
  return {
    workspaceId: stored?.workspaceId,
    apiId: stored?.apiId,
    policyId: stored?.policyId,
    policyVersion: stored?.version,
    dataPlane: toDataPlaneStatus(stored?.dataPlane, observed),
  };
}

const ACCEPTED: FurtherCondition = {
  type: "Accepted",
  status: "True",
  reason: "Succeeded",
  message: "The spec is valid and all references are resolved.",
};

/**
 * Returns the verdict if an older policy selects the same pods. The webhook injects a gate for the older one, and a pod has one gate, which
 * enforces one policy.
 */
export function podConflict(object: ManifestObject, selected: ObservedPolicy["selected"]): Verdict | undefined {
  if (typeof selected !== "object" || selected.competitor === undefined) return undefined;
  return competitorConflict(
    object,
    [selected.competitor],
    (competitor) =>
      `${competitor} is older and guards ${selected.contested} of the running pods of spec.selector. Narrow one of the two selectors.`,
  );
}
