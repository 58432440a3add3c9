import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { FurtherCondition } from "../plan.ts";
import type { DataPlane } from "./observed.ts";

/** Lag that the API returns for a sidecar before its first heartbeat, because JSON has no infinity. */
export const NEVER_HEARD_MS = Number.MAX_SAFE_INTEGER;

/**
 * Whether a sidecar serves data that is staler than the active policy allows (`onStale.after`). Returns `undefined` if this is unknown: the
 * status then keeps the last known value, and no second Event is emitted.
 */
export function stale(
  dataPlane: DataPlane | undefined,
  onStale: CompiledPolicy["onStale"],
  { previous, nowMs }: { previous: readonly Condition[]; nowMs: number },
): FurtherCondition | undefined {
  if (dataPlane === undefined) return undefined;
  const { pods, maxStalenessMs } = dataPlane;
  const afterS = onStale.afterMs / 1000;
  if (pods === 0) {
    const message = "No sidecar has reported on this policy lately.";
    return { type: "Stale", status: "False", reason: "NoPods", message, alerts: true };
  }
  if (maxStalenessMs <= onStale.afterMs) {
    const message = `No sidecar is behind by more than the ${afterS} s of spec.onStale.after.`;
    return { type: "Stale", status: "False", reason: "Succeeded", message, alerts: true };
  }
  const known = previous.find(({ type }) => type === "Stale");
  const waitedMs = known?.status === "Unknown" ? nowMs - Date.parse(known.lastTransitionTime) : 0;
  // Every sidecar starts without a heartbeat and receives the first within 1–2 s.
  if (maxStalenessMs >= NEVER_HEARD_MS && known?.status !== "True" && waitedMs <= onStale.afterMs) {
    const message = "A sidecar has not heard yet how current what it knows is.";
    return { type: "Stale", status: "Unknown", reason: "Progressing", message, alerts: true };
  }
  const does =
    onStale.action === "Deny"
      ? "refuses every request"
      : `goes on serving the keys that it knows, up to ${onStale.denyAfterMs / 1000} s`;
  const message = `A sidecar has heard of no changes for longer than the ${afterS} s of spec.onStale.after, and ${does}. See status.dataPlane.maxStalenessMs, and whether the relay and Redis work.`;
  return { type: "Stale", status: "True", reason: "DataStale", message, alerts: true };
}
