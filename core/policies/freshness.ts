import type { CompiledPolicy } from "./policy.ts";

/**
 * `Fresh`: within the promised time. `Departed`: past it, served all the same because the policy says so, and counted.
 * `Denied`: what is known is too old to let anybody in.
 */
export type Freshness = "Fresh" | "Departed" | "Denied";

/** What the policy's `onStale` says about knowledge of this age. `Deny` makes the first bound the last. */
export function judgeFreshness(onStale: CompiledPolicy["onStale"], stalenessMs: number): Freshness {
  if (stalenessMs <= onStale.afterMs) return "Fresh";
  if (onStale.action === "Deny" || stalenessMs > onStale.denyAfterMs) return "Denied";
  return "Departed";
}
