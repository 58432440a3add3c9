import type { LimitCharge } from "../charges.ts";
import type { KeyView } from "../verification/key-view.ts";
import { type ChargePlan, chargeOf } from "../verification/plan-charges.ts";
import { type SelectedLimit, selectLimits } from "../verification/select-limits.ts";
import { type CompiledLimit, type Counting, identifierOf, type RequestValues } from "./counted-by.ts";
import type { CompiledRule } from "./match-rule.ts";

export interface PlanOptions {
  readonly workspaceId: string;
  readonly request: RequestValues;
  /** Whether everything is checked with cost 0 and no credits are spent. */
  readonly audit: boolean;
}

/**
 * Returns the plan of a request that matches a rule of a policy. `view` is `undefined` for a request without a key. A limit of the rule
 * replaces the limits of the key and its identity that have the same name.
 */
export function planRule(view: KeyView | undefined, rule: CompiledRule, options: PlanOptions): ChargePlan {
  const { audit } = options;
  const counting: Counting = { view, request: options.request, path: rule.path };
  const own = view === undefined ? NONE : limitsOfKey(view, rule);
  const selected = [...own];
  const limits = own.map((limit) => withAudit(chargeOf(options.workspaceId, limit), audit));
  const shared: LimitCharge[] = [];
  for (const limit of rule.ratelimits) {
    const charge = chargeOfRule(limit, counting, options);
    if (limit.scope.kind === "namespace") shared.push(charge);
    else {
      limits.push(charge);
      selected.push(selectedOf(limit, charge));
    }
  }
  const spends = view?.key.limited === true && rule.creditCost > 0 && !audit;
  return {
    selected,
    limits,
    shared,
    credits: spends ? { workspaceId: options.workspaceId, keyId: view.key.keyId, cost: rule.creditCost } : undefined,
  };
}

const NONE: readonly SelectedLimit[] = [];

function limitsOfKey(view: KeyView, { ratelimits }: CompiledRule): readonly SelectedLimit[] {
  const selection = selectLimits(view, []);
  if (!("limits" in selection)) throw new Error("limits that apply automatically are always selected");
  if (ratelimits.length === 0 || selection.limits.length === 0) return selection.limits;
  return selection.limits.filter(({ name }) => !ratelimits.some((limit) => nameOf(limit) === name));
}

const nameOf = ({ scope }: CompiledLimit): string | undefined => (scope.kind === "name" ? scope.name : undefined);

const withAudit = (charge: LimitCharge, audit: boolean): LimitCharge => (audit ? { ...charge, cost: 0 } : charge);

/** All charges list their members in the same order, so that JavaScript engines give them one object shape. */
function chargeOfRule(limit: CompiledLimit, counting: Counting, { workspaceId, audit }: PlanOptions): LimitCharge {
  const { scope, durationMs, accuracy } = limit;
  return {
    workspaceId,
    scope:
      scope.kind === "name" ? { kind: "name", value: scope.name } : { kind: "namespace", value: scope.namespaceId },
    identifier: identifierOf(limit, counting),
    limit: limit.limit,
    durationMs,
    cost: audit ? 0 : limit.cost,
    accuracy,
  };
}

/** The empty id marks a limit that is not stored with a key or an identity. */
const selectedOf = ({ cost }: CompiledLimit, { scope, identifier, limit, durationMs }: LimitCharge): SelectedLimit => ({
  id: "",
  name: scope.value,
  limit,
  durationMs,
  autoApply: false,
  cost,
  identifier,
});
