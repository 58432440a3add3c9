import type { CreditOutcome, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import { PublicError } from "../../core/errors.ts";
import type { Deps } from "../deps.ts";
import { consumeLimits } from "./consume-limits.ts";

export interface KeyCharges {
  readonly workspaceId: string;
  readonly keyId: string;
  readonly limits: readonly LimitCharge[];
  /** undefined for an unlimited key; 0 checks. */
  readonly creditCost: number | undefined;
}

export interface KeyConsumed {
  readonly limits: readonly LimitOutcome[];
  readonly passed: boolean;
  /** What remains of the key's credits, whatever became of the call; undefined for an unlimited key. */
  readonly credits: { readonly status: "spent" | "refused" | "unreached"; readonly remaining: number } | undefined;
}

type Consuming = Pick<Deps, "counters" | "credits" | "log">;

/**
 * Charges a key's limits and credits. A credit counter that is not loaded is loaded and asked once more, for the credits
 * alone: the limits have been charged by then. A key whose credits are changed all the time is charged in between. While the
 * shared store is away, limits alone are decided in this process; credits are not.
 * @throws PublicError 500 `service_unavailable` when the credits cannot be counted, and CountersUnavailable.
 */
export async function consumeForKey(deps: Consuming, charges: KeyCharges): Promise<KeyConsumed> {
  const { workspaceId, keyId, limits, creditCost } = charges;
  if (creditCost === undefined) return { ...(await consumeLimits(deps, limits)), credits: undefined };
  const credits = { workspaceId, keyId, cost: creditCost };
  const consumed = await deps.counters.consume({ limits, credits });
  const outcome = await settleCredits(deps, credits, consumed.credits);
  return { limits: consumed.limits, passed: consumed.passed, credits: outcome };
}

async function settleCredits(
  deps: Consuming,
  charge: { workspaceId: string; keyId: string; cost: number },
  first: CreditOutcome | undefined,
): Promise<KeyConsumed["credits"]> {
  let outcome = first;
  if (outcome?.status === "unknown") {
    const again = await deps.credits.loadAndSpend(charge, () => deps.counters.consume({ limits: [], credits: charge }));
    // Unlimited, or deleted, since its record was read: as if this call had come before that.
    if (again === undefined) return undefined;
    outcome = again.credits;
  }
  if (outcome === undefined || outcome.status === "unknown") {
    throw new PublicError("service_unavailable", "The credits of the key cannot be counted now.");
  }
  if (outcome.status !== "unreached") return outcome;
  const remaining = outcome.remaining ?? (await deps.credits.readRemaining(charge));
  return remaining === undefined ? undefined : { status: "unreached", remaining };
}
