import type { LimitCharge } from "../charges.ts";
import { KeyView } from "../verification/key-view.ts";
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

/** The plan of the last request with a key, or of the last one without a key that matched a rule. */
interface LastPlan {
  rule: CompiledRule | undefined;
  identifiers: readonly string[];
  workspaceId: string;
  audit: boolean;
  plan: ChargePlan;
}

const NO_CHARGES: ChargePlan = { selected: [], limits: [], shared: [], credits: undefined };
const noPlan = (): LastPlan => ({ rule: undefined, identifiers: [], workspaceId: "", audit: false, plan: NO_CHARGES });
const lastOfKey = KeyView.remember(noPlan);
const lastOfRule = new WeakMap<CompiledRule, LastPlan>();

function lastWithoutKey(rule: CompiledRule): LastPlan {
  const known = lastOfRule.get(rule);
  if (known !== undefined) return known;
  const made = noPlan();
  lastOfRule.set(rule, made);
  return made;
}

/**
 * Returns the plan of a request that matches a rule of a policy. `view` is `undefined` for a request without a key. A limit of the rule
 * replaces the limits of the key and its identity that have the same name.
 *
 * If the last request of the key counted by the same values, its plan is returned again, because counters cache their Redis command by the
 * plan's charges. Making the command takes several times as long as planning.
 */
export function planRule(view: KeyView | undefined, rule: CompiledRule, options: PlanOptions): ChargePlan {
  const last = view === undefined ? lastWithoutKey(rule) : lastOfKey(view);
  const { workspaceId, audit } = options;
  const isSame = last.rule === rule && last.workspaceId === workspaceId && last.audit === audit;
  const identifiers = identifiersOf(rule, { view, request: options.request, path: rule.path }, last.identifiers);
  if (isSame && identifiers === last.identifiers) return last.plan;
  const plan = makePlan(view, rule, identifiers, options);
  Object.assign(last, { rule, identifiers, workspaceId, audit, plan });
  return plan;
}

/** Returns the identifier of each limit of the rule; `last` itself if it has the same ones. */
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
): ChargePlan {
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
