import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { FurtherCondition } from "../plan.ts";
import { unsupported } from "./enforced.ts";
import { type DataPlane, NEVER_HEARD_MS, type ObservedPolicy } from "./observed.ts";

/* Conditions that depend only on the reports of the sidecars. Pure. */

/** Returns the conditions. They refer to the active policy, which may differ from the manifest. */
export function ofSidecars(observed: ObservedPolicy): FurtherCondition[] {
  const { stored } = observed;
  const onStale = stored?.onStale;
  return [
    onStale === undefined ? undefined : stale(stored?.dataPlane, onStale, observed),
    unsupported(stored?.dataPlane, observed),
    limitsExceeded(stored?.dataPlane, observed),
  ].filter((condition) => condition !== undefined);
}

/**
 * Returns the condition Stale, which is True if a sidecar serves data that is older than the active policy allows (`onStale.after`).
 * Returns `undefined` if this is unknown; the status then keeps its last value, and no further Event is emitted.
 */
function stale(
  dataPlane: DataPlane | undefined,
  onStale: CompiledPolicy["onStale"],
  { previous, nowMs }: { previous: readonly Condition[]; nowMs: number },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  const { pods, maxStalenessMs } = dataPlane;
  const afterS = onStale.afterMs / 1000;
  if (pods === 0) {
    const message = "No gate has reported this policy recently.";
    return { type: "Stale", status: "False", reason: "NoPods", message, alerts: true };
  }
  if (maxStalenessMs <= onStale.afterMs) {
    const message = `The data of all gates is younger than the ${afterS} s of spec.onStale.after.`;
    return { type: "Stale", status: "False", reason: "Succeeded", message, alerts: true };
  }
  const known = previous.find(({ type }) => type === "Stale");
  const waitedMs = known?.status === "Unknown" ? nowMs - Date.parse(known.lastTransitionTime) : 0;
  // Every sidecar starts without a heartbeat and receives the first one within 1 to 2 s.
  if (maxStalenessMs >= NEVER_HEARD_MS && known?.status !== "True" && waitedMs <= onStale.afterMs) {
    const message = "The age of a gate's data is unknown until its first heartbeat.";
    return { type: "Stale", status: "Unknown", reason: "Progressing", message, alerts: true };
  }
  const does =
    onStale.action === "Deny"
      ? "rejects all requests"
      : `continues to accept cached keys, up to ${onStale.denyAfterMs / 1000} s`;
  const message = `The data of a gate is older than the ${afterS} s of spec.onStale.after, so it ${does}. Check status.dataPlane.maxStalenessMs, the relay and Redis.`;
  return { type: "Stale", status: "True", reason: "DataStale", message, alerts: true };
}

/** Time for which a policy has the condition LimitsExceeded after a limit was last exceeded. */
const TOLD_FOR_MS = 3_600_000;

/** Returns whether limits were recently exceeded because the shared counters were unavailable and pods counted locally. Pure. */
export const isOverAdmitted = ({ overAdmitted }: DataPlane): boolean =>
  overAdmitted !== undefined && overAdmitted.lastAgoMs <= TOLD_FOR_MS;

/**
 * Returns the condition LimitsExceeded, with the amount by which limits were exceeded in the last hour. Returns `undefined` if this is
 * unknown or has never happened, so most policies never have the condition.
 */
export function limitsExceeded(
  dataPlane: DataPlane | undefined,
  { previous }: { previous: readonly Condition[] },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  if (dataPlane.overAdmitted !== undefined && isOverAdmitted(dataPlane)) {
    const { units, percent } = dataPlane.overAdmitted;
    const message = `Gates admitted ${units} ${units === 1 ? "unit" : "units"} beyond limits while Redis was unavailable, up to ${percent} % of a limit. Check Redis; spec.onCounterFailure controls this excess.`;
    return { type: "LimitsExceeded", status: "True", reason: "CountersUnavailable", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "LimitsExceeded")) return undefined;
  const message = "No limit was exceeded in the last hour.";
  return { type: "LimitsExceeded", status: "False", reason: "Succeeded", message, alerts: true };
}
