import type { CreditCharge, LimitCharge } from "../charges.ts";
import type { KeyView } from "./key-view.ts";
import { type LimitSelection, type RequestedLimit, type SelectedLimit, selectLimits } from "./select-limits.ts";

/*
 * What a verification is charged: which limits are counted, with what cost, and how many credits are spent. A plan depends on
 * the key and on what is asked alone, so that it can be kept for as long as both live. Only the overrides of namespaces are
 * looked up for each request.
 */

export interface ChargePlan {
  /** What each of `limits` was made of, in the same order. */
  readonly selected: readonly SelectedLimit[];
  /** Limits by name: those of the key and its identity that apply by themselves, and those that were asked for; sorted by name. */
  readonly limits: readonly LimitCharge[];
  /** Limits of namespaces, before their overrides. */
  readonly shared: readonly SharedLimit[];
  /** undefined for a key with unlimited credits, and where nothing is spent. */
  readonly credits: CreditCharge | undefined;
}

export interface SharedLimit {
  readonly namespaceId: string;
  readonly charge: LimitCharge;
}

/** Whether a plan charges anything; what charges nothing needs no counter. */
export const chargesAnything = ({ limits, shared, credits }: ChargePlan): boolean =>
  limits.length > 0 || shared.length > 0 || credits !== undefined;

/** What a call of `keys.verifyKey` asks for. */
export interface CallCharges {
  readonly ratelimits: readonly RequestedLimit[];
  /** 0 checks whether any are left. */
  readonly creditCost: number;
}

/** The plan of a call that names its limits, or why one of them cannot be charged (see `LimitSelection`). */
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

/** The charge of a selected limit, counted exactly. */
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
