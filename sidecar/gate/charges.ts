import type { CreditCharge, LimitCharge } from "../../core/charges.ts";
import type { CompiledRule } from "../../core/policies/match-rule.ts";
import type { RuleRatelimit } from "../../core/policies/policy.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { OverrideRecord } from "../../core/verification/records.ts";
import { selectLimits } from "../../core/verification/select-limits.ts";

/*
 * What a request that passes a rule with a key is charged. It depends on the key's record and the rule alone, so it is
 * made once for both and kept for as long as they live; only overrides of namespaces are looked up each time.
 */

export interface Charges {
  /** autoApply limits of the key and its identity, and those that the rule names; sorted by name. */
  readonly named: readonly LimitCharge[];
  readonly shared: readonly SharedLimit[];
  /** undefined for unlimited keys, and where the rule costs nothing. */
  readonly credits: CreditCharge | undefined;
}

/** A limit of a namespace, before its overrides. */
export interface SharedLimit {
  readonly namespaceId: string;
  readonly charge: LimitCharge;
}

export interface ChargeOptions {
  /** Audit: everything is checked with cost 0, and nothing is spent. */
  readonly audit: boolean;
}

export function planCharges(view: KeyView, rule: CompiledRule, { audit }: ChargeOptions): Charges {
  const { keyId, workspaceId } = view.key;
  const named = rule.ratelimits.filter((limit) => limit.scope.kind === "name");
  const selection = selectLimits(
    view,
    named.map(({ scope, limit, durationMs, cost }) => ({ name: nameOf(scope), limit, durationMs, cost })),
  );
  // A rule always gives limit and duration, and the policy's schema their bounds.
  if (!("limits" in selection)) throw new Error(`the limits of rule ${rule.index} cannot be selected`);

  // The last of a name wins, as in the selection.
  const ofRule = new Map(named.map((limit) => [nameOf(limit.scope), limit]));
  const charges = selection.limits.map((selected): LimitCharge => {
    const own = ofRule.get(selected.name);
    return {
      workspaceId,
      scope: { kind: "name", value: selected.name },
      identifier: own === undefined ? selected.identifier : identifierOf(own, view),
      limit: selected.limit,
      durationMs: selected.durationMs,
      cost: audit ? 0 : selected.cost,
      accuracy: own?.accuracy ?? "strict",
    };
  });
  const shared: SharedLimit[] = [];
  for (const limit of rule.ratelimits) {
    if (limit.scope.kind !== "namespace") continue;
    const { namespaceId } = limit.scope;
    const charge: LimitCharge = {
      workspaceId,
      scope: { kind: "namespace", value: namespaceId },
      identifier: identifierOf(limit, view),
      limit: limit.limit,
      durationMs: limit.durationMs,
      cost: audit ? 0 : limit.cost,
      accuracy: limit.accuracy,
    };
    shared.push({ namespaceId, charge });
  }
  const spends = view.key.limited && rule.creditCost > 0 && !audit;
  return { named: charges, shared, credits: spends ? { workspaceId, keyId, cost: rule.creditCost } : undefined };
}

/** An override replaces limit and duration; the cost stays (api-v2.md section 9.3). */
export const overridden = (charge: LimitCharge, override: OverrideRecord): LimitCharge => ({
  ...charge,
  limit: override.limit,
  durationMs: override.durationMs,
  accuracy: override.async ? "local" : charge.accuracy,
});

const nameOf = (scope: RuleRatelimit["scope"]): string => (scope.kind === "name" ? scope.name : scope.namespaceId);

/** `identity` is the external id, which the customer knows and overrides name; a key without an identity counts for itself. */
const identifierOf = (limit: RuleRatelimit, view: KeyView): string =>
  limit.identifier === "identity" ? (view.identity?.externalId ?? view.key.keyId) : view.key.keyId;
