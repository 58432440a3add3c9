import type { Condition } from "../../../core/manifests/conditions.ts";
import type { FurtherCondition } from "../plan.ts";
import type { DataPlane } from "./observed.ts";

/** The policy has this condition for one hour after the last exceeded limit. */
const TOLD_FOR_MS = 3_600_000;

/** Whether limits were exceeded recently, because the shared counters were unavailable and pods counted locally. Pure. */
export const isOverAdmitted = ({ overAdmitted }: DataPlane): boolean =>
  overAdmitted !== undefined && overAdmitted.lastAgoMs <= TOLD_FOR_MS;

/**
 * Reports how far limits were exceeded in the last hour. Returns `undefined` if this is unknown or has never happened, so that most
 * policies never have this condition.
 */
export function limitsExceeded(
  dataPlane: DataPlane | undefined,
  { previous }: { previous: readonly Condition[] },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  if (dataPlane.overAdmitted !== undefined && isOverAdmitted(dataPlane)) {
    const { units, percent } = dataPlane.overAdmitted;
    const message = `Sidecars admitted ${units} ${units === 1 ? "unit" : "units"} beyond limits while the shared counters were away, up to ${percent} % of a limit. See whether Redis works; spec.onCounterFailure bounds it.`;
    return { type: "LimitsExceeded", status: "True", reason: "CountersUnavailable", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "LimitsExceeded")) return undefined;
  const message = "No limit was found to be exceeded in the last hour.";
  return { type: "LimitsExceeded", status: "False", reason: "Succeeded", message, alerts: true };
}
