import type { Condition } from "../../../core/manifests/conditions.ts";
import type { FurtherCondition } from "../plan.ts";
import type { DataPlane } from "./observed.ts";

/** For so long after it was last found out that a limit was exceeded the policy is `Overshot`. */
const TOLD_FOR_MS = 3_600_000;

/** Whether limits were exceeded lately, because the shared counters were away and pods counted alone. Pure. */
export const isOvershot = ({ overshot }: DataPlane): boolean =>
  overshot !== undefined && overshot.lastAgoMs <= TOLD_FOR_MS;

/**
 * Tells how far limits were exceeded in the last hour. Returns undefined when that is unknown, and as long as none ever was, so that most
 * policies never have this condition.
 */
export function overshot(
  dataPlane: DataPlane | undefined,
  { previous }: { previous: readonly Condition[] },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  if (dataPlane.overshot !== undefined && isOvershot(dataPlane)) {
    const { units, percent } = dataPlane.overshot;
    const message = `Sidecars admitted ${units} ${units === 1 ? "unit" : "units"} beyond limits while the shared counters were away, up to ${percent} % of a limit. See whether Redis works; spec.onCounterFailure bounds it.`;
    return { type: "Overshot", status: "True", reason: "CountersAway", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "Overshot")) return undefined;
  const message = "No limit was found to be exceeded in the last hour.";
  return { type: "Overshot", status: "False", reason: "Succeeded", message, alerts: true };
}
