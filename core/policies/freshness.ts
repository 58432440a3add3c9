import type { CompiledPolicy } from "./policy.ts";

/**
 * `Fresh`: no older than `onStale.afterMs`. `Stale`: older, but still used because the policy allows it; such requests are counted.
 * `Expired`: too old to admit any request.
 */
export type Freshness = "Fresh" | "Stale" | "Expired";

/**
 * Returns the freshness of data of this age by the policy's `onStale`. With `Deny`, data expires at `afterMs`, because no later threshold
 * exists.
 */
export function checkFreshness(onStale: CompiledPolicy["onStale"], stalenessMs: number): Freshness {
  if (stalenessMs <= onStale.afterMs) return "Fresh";
  if (onStale.action === "Deny" || stalenessMs > onStale.denyAfterMs) return "Expired";
  return "Stale";
}
