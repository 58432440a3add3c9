import type { CreditCharge, LimitCharge } from "../charges.ts";
import type { KeyView } from "./key-view.ts";
import { type LimitSelection, type RequestedLimit, type SelectedLimit, selectLimits } from "./select-limits.ts";

/*
 * Charges of a verification: which limits are counted, with what cost, and how many credits are spent. A plan depends only on the key and
 * the request's parameters, so it can be cached while both stay the same. Only the overrides of namespaces are looked up for each request.
 */

export interface ChargePlan {
  /** Source of each limit in `limits`, in the same order. */
  readonly selected: readonly SelectedLimit[];
  /** Named limits, sorted by name: the automatic limits of the key and its identity, and the requested limits. */
  readonly limits: readonly LimitCharge[];
  /** Limits of namespaces, before their overrides. */
  readonly shared: readonly LimitCharge[];
  /** Credit charge; `undefined` for a key with unlimited credits, and for a request that spends none. */
  readonly credits: CreditCharge | undefined;
}

/** Returns whether a plan charges anything. A plan without charges needs no counters. */
export const chargesAnything = ({ limits, shared, credits }: ChargePlan): boolean =>
  limits.length > 0 || shared.length > 0 || credits !== undefined;

/** The charges that a call of `keys.verifyKey` requests. */
export interface CallCharges {
  readonly ratelimits: readonly RequestedLimit[];
  /** Credits to spend; 0 checks whether any credits remain. */
  readonly creditCost: number;
}

/** Returns the plan of a call that names its limits, or the reason why one of them cannot be charged (see `LimitSelection`). */
export function planCall(
  view: KeyView,
  { ratelimits, creditCost }: CallCharges,
): ChargePlan | Exclude<LimitSelection, { limits: unknown }> {
  const selection = selectLimits(view, ratelimits);
  if (!("limits" in selection)) return selection;
  const { keyId, workspaceId, limited } = view.key;
  return {
    selected: selection.limits,
    limits: selection.limits.map((selected) => chargeOf(workspaceId, selected)),
    shared: [],
    credits: limited ? { workspaceId, keyId, cost: creditCost } : undefined,
  };
}

/** Returns the charge of a selected limit, with strict accuracy. */
export const chargeOf = (
  workspaceId: string,
  { name, identifier, limit, durationMs, cost }: SelectedLimit,
): LimitCharge => ({
  workspaceId,
  scope: { kind: "name", value: name },
  identifier,
  limit,
  durationMs,
  cost,
  accuracy: "strict",
});
