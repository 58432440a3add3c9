import type { ApiKeyPolicyStatus } from "../../../core/manifests/api-key-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { FurtherCondition } from "../plan.ts";
import type { DataPlane } from "./observed.ts";
import type { Pace } from "./poll-pace.ts";
import { NEVER_HEARD_MS } from "./stale.ts";

/** Whether the sidecars have the current policy, according to their own reports. */
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
  if (dataPlane.refused !== undefined) {
    return {
      type: "Enforced",
      status: "False",
      reason: "FormatNotKnown",
      message: refusalMessage(dataPlane.refused, pods),
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

const refusalMessage = ({ pods: refusing, reason }: NonNullable<DataPlane["refused"]>, pods: number): string =>
  `${refusing} of ${pods} sidecars cannot enforce this generation and keep the last that they could: ${reason}. Upgrade the sidecars, or take back what their release does not know.`;

/**
 * Whether sidecars of an older release refuse the stored policy. Returns undefined when that is unknown, and as long as none ever
 * did, so that most policies never have this condition.
 */
export function refused(
  dataPlane: DataPlane | undefined,
  { previous }: { previous: readonly Condition[] },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  if (dataPlane.refused !== undefined) {
    const message = refusalMessage(dataPlane.refused, dataPlane.pods);
    return { type: "Refused", status: "True", reason: "FormatNotKnown", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "Refused")) return undefined;
  const message = "No sidecar refuses this generation.";
  return { type: "Refused", status: "False", reason: "Succeeded", message, alerts: true };
}

const LAG_STEP_MS = 5_000;

/**
 * For the status: the lag is rounded up to five seconds, so that its normal variation does not cause writes, and left
 * out when it is infinite.
 */
export function toDataPlaneStatus(dataPlane: DataPlane | undefined): ApiKeyPolicyStatus["dataPlane"] {
  if (dataPlane === undefined) return undefined;
  const { pods, current, oldestLagMs, refused } = dataPlane;
  const counts = { pods, current, ...(refused === undefined ? {} : { refused: refused.pods }) };
  if (oldestLagMs >= NEVER_HEARD_MS) return counts;
  return { ...counts, oldestLagMs: Math.ceil(oldestLagMs / LAG_STEP_MS) * LAG_STEP_MS };
}

const SOON_MS = 2_000;
const FOLLOWING_MS = 1_000;

/**
 * Returns how often the reports are wanted: soon while pods are expected to start or to catch up, but with growing intervals, because
 * having no pods may be intended, and a sidecar may never catch up. undefined when nothing is expected to change. `previous` is the
 * condition in the status so far.
 */
export function paceOf(
  { type, status, reason }: FurtherCondition,
  { previous, nowMs }: { previous: readonly Condition[]; nowMs: number },
): Pace | undefined {
  if (status !== "False") return undefined;
  const known = previous.find((one) => one.type === type);
  const isSame = known?.status === status && known.reason === reason;
  return {
    soonMs: reason === "Progressing" ? FOLLOWING_MS : SOON_MS,
    sinceMs: isSame ? Date.parse(known.lastTransitionTime) : nowMs,
  };
}
