import type { FurtherCondition } from "../plan.ts";
import type { DataPlane } from "./gather.ts";

/** Whether the sidecars have the policy of now: what they report themselves, not what we hope. */
export function enforced(dataPlane: DataPlane | undefined): FurtherCondition {
  if (dataPlane === undefined) {
    return {
      type: "Enforced",
      status: "Unknown",
      reason: "ReportsUnavailable",
      message: "What the sidecars report cannot be read for now.",
    };
  }
  const { pods, current } = dataPlane;
  if (pods === 0) {
    return {
      type: "Enforced",
      status: "False",
      reason: "NoPods",
      message: "No sidecar has reported on this policy lately.",
    };
  }
  if (current < pods) {
    const message = `${current} of ${pods} sidecars enforce this generation; the others follow.`;
    return { type: "Enforced", status: "False", reason: "Progressing", message };
  }
  const message =
    pods === 1 ? "The one sidecar enforces this generation." : `All ${pods} sidecars enforce this generation.`;
  return { type: "Enforced", status: "True", reason: "Succeeded", message };
}

const LAG_STEP_MS = 5_000;

/** For the status: the lag is rounded up to five seconds, so that its normal wavering is not a change to be written. */
export function toDataPlaneStatus(dataPlane: DataPlane | undefined): DataPlane | undefined {
  if (dataPlane === undefined) return undefined;
  const { pods, current, oldestLagMs } = dataPlane;
  return { pods, current, oldestLagMs: Math.ceil(oldestLagMs / LAG_STEP_MS) * LAG_STEP_MS };
}

/** Soon while sidecars follow; now and then to see that they still do. */
export const refreshMs = ({ status, reason }: FurtherCondition): number =>
  status === "False" && reason === "Progressing" ? 1_000 : 15_000;
