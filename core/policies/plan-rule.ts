import type { LimitCharge } from "../charges.ts";
import type { KeyView } from "../verification/key-view.ts";
import { type ChargePlan, chargeOf } from "../verification/plan-charges.ts";
import { type SelectedLimit, selectLimits } from "../verification/select-limits.ts";
import { type CompiledLimit, type Counting, identifierOf, type RequestValues } from "./counted-by.ts";
import type { CompiledRule } from "./match-rule.ts";

export interface PlanOptions {
  readonly workspaceId: string;
  readonly request: RequestValues;
  /** Whether the plan only checks limits, with cost 0, and spends no credits. */
  readonly audit: boolean;
}

/** The charges of a request, and for each limit of the rule the identifier that it counts. */
export interface RulePlan extends ChargePlan {
  readonly identifiers: readonly string[];
}

const NO_IDENTIFIERS: readonly string[] = [];

/**
 * Returns the plan of a request that matches a rule of a policy. `view` is `undefined` for a request without a key. A limit of the rule
 * replaces the limits of the key and its identity that have the same name.
 *
 * `last` is an earlier plan for the same view, rule and options. It is returned again if it counts the same identifiers, because counters
 * cache their Redis command by the plan's charges, and building the command takes several times as long as planning.
 */
export function planRule(
  view: KeyView | undefined,
  rule: CompiledRule,
  options: PlanOptions,
  last?: RulePlan,
): RulePlan {
  const before = last?.identifiers ?? NO_IDENTIFIERS;
  const identifiers = identifiersOf(rule, { view, request: options.request, path: rule.path }, before);
  return last !== undefined && identifiers === before ? last : makePlan(view, rule, identifiers, options);
}

/** Returns the identifier of each limit of the rule, or `last` itself if it has the same identifiers. */
function identifiersOf({ ratelimits }: CompiledRule, counting: Counting, last: readonly string[]): readonly string[] {
  let changed: string[] | undefined = ratelimits.length === last.length ? undefined : [];
  for (let at = 0; at < ratelimits.length; at++) {
    const identifier = identifierOf(ratelimits[at] as CompiledLimit, counting);
    if (changed === undefined && identifier !== last[at]) changed = last.slice(0, at);
    changed?.push(identifier);
  }
  return changed ?? last;
}

function makePlan(
  view: KeyView | undefined,
  rule: CompiledRule,
  identifiers: readonly string[],
  options: PlanOptions,
): RulePlan {
  const { audit } = options;
  const own = view === undefined ? NONE : limitsOfKey(view, rule);
  const selected = [...own];
  const limits = own.map((limit) => withAudit(chargeOf(options.workspaceId, limit), audit));
  const shared: LimitCharge[] = [];
  for (const [at, limit] of rule.ratelimits.entries()) {
    const charge = chargeOfRule(limit, identifiers[at] as string, options);
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
    identifiers,
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

/** All charges have their members in the same order, so that the JavaScript engine gives them the same object shape. */
function chargeOfRule(limit: CompiledLimit, identifier: string, { workspaceId, audit }: PlanOptions): LimitCharge {
  const { scope, durationMs, accuracy } = limit;
  return {
    workspaceId,
    scope:
      scope.kind === "name" ? { kind: "name", value: scope.name } : { kind: "namespace", value: scope.namespaceId },
    identifier,
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
