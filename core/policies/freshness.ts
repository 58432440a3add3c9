import type { CompiledPolicy } from "./policy.ts";

/**
 * `Fresh`: within the promised time. `Departed`: older, served anyway because the policy allows it, and counted. `Denied`: too old to admit
 * any request.
 */
export type Freshness = "Fresh" | "Departed" | "Denied";

/** Returns what the policy's `onStale` prescribes for data of this age. With `Deny` the first threshold is the last. */
export function checkFreshness(onStale: CompiledPolicy["onStale"], stalenessMs: number): Freshness {
  if (stalenessMs <= onStale.afterMs) return "Fresh";
  if (onStale.action === "Deny" || stalenessMs > onStale.denyAfterMs) return "Denied";
  return "Departed";
}
