import type { LimitCharge } from "../charges.ts";
import type { KeyView } from "../verification/key-view.ts";
import { type ChargePlan, chargeOf } from "../verification/plan-charges.ts";
import { selectLimits } from "../verification/select-limits.ts";
import type { CompiledRule } from "./match-rule.ts";
import type { RuleRatelimit } from "./policy.ts";

/**
 * Returns the plan of a request that matches a rule of a policy. With `audit` everything is checked with cost 0 and no credits are spent.
 * Requires a valid policy: every rule limit has a limit and a duration of at least 1 s.
 */
export function planRule(view: KeyView, rule: CompiledRule, { audit }: { readonly audit: boolean }): ChargePlan {
  const { keyId, workspaceId, limited } = view.key;
  const named = rule.ratelimits.filter((limit) => limit.scope.kind === "name");
  const selection = selectLimits(
    view,
    named.map(({ scope, limit, durationMs, cost }) => ({ name: nameOf(scope), limit, durationMs, cost })),
  );
  if (!("limits" in selection)) throw new Error(`the limits of rule ${rule.index} cannot be selected`);

  // If several entries have the same name, the last one applies, as in `selectLimits`.
  const ofRule = new Map(named.map((limit) => [nameOf(limit.scope), limit]));
  const limits = selection.limits.map((selected): LimitCharge => {
    const own = ofRule.get(selected.name);
    const charge = chargeOf(workspaceId, selected);
    if (own !== undefined) return { ...charge, ...ruleParts(own, view, audit) };
    return audit ? { ...charge, cost: 0 } : charge;
  });
  const shared = rule.ratelimits.flatMap((limit): LimitCharge[] => {
    if (limit.scope.kind !== "namespace") return [];
    const scope = { kind: "namespace", value: limit.scope.namespaceId } as const;
    const { limit: max, durationMs } = limit;
    const { identifier, cost, accuracy } = ruleParts(limit, view, audit);
    // All charges list their members in the same order, so that JavaScript engines give them one object shape.
    return [{ workspaceId, scope, identifier, limit: max, durationMs, cost, accuracy }];
  });
  const spends = limited && rule.creditCost > 0 && !audit;
  return {
    selected: selection.limits,
    limits,
    shared,
    credits: spends ? { workspaceId, keyId, cost: rule.creditCost } : undefined,
  };
}

/** Returns the members of a charge that depend only on the rule. */
const ruleParts = (
  limit: RuleRatelimit,
  view: KeyView,
  audit: boolean,
): Pick<LimitCharge, "identifier" | "cost" | "accuracy"> => ({
  identifier: identifierOf(limit, view),
  cost: audit ? 0 : limit.cost,
  accuracy: limit.accuracy,
});

const nameOf = (scope: RuleRatelimit["scope"]): string => (scope.kind === "name" ? scope.name : scope.namespaceId);

/**
 * Returns the identifier that a limit counts. For `identity`, the identifier is the external id, which customers know and overrides refer
 * to. A key without an identity has a counter of its own.
 */
const identifierOf = (limit: RuleRatelimit, view: KeyView): string =>
  limit.identifier === "identity" ? (view.identity?.externalId ?? view.key.keyId) : view.key.keyId;
