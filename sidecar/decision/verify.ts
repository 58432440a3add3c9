import type { RequestValues } from "../../core/policies/counted-by.ts";
import { checkFreshness } from "../../core/policies/freshness.ts";
import type { CompiledRule } from "../../core/policies/match-rule.ts";
import { type PlanOptions, planRule, type RulePlan } from "../../core/policies/plan-rule.ts";
import { KeyView } from "../../core/verification/key-view.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { count as charge } from "../../edge/verification/count.ts";
import { type RuleRequest, RuleVerification } from "../../edge/verification/rule-verification.ts";
import * as edge from "../../edge/verification/verify.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";

/*
 * Verifies keys for the rules of a policy, by means of edge/verification. The gate's data must be fresh enough for the policy, and the key
 * must belong to the policy's API. The rule defines the required permissions and the charges.
 */

export interface VerifyDeps extends edge.VerifyDeps {
  readonly projection: Projection;
  readonly workspaceId: string;
  /** Called when a policy admits a request although the gate's data is stale. */
  readonly onStaleDecision: () => void;
}

export interface Question extends RuleRequest {
  readonly active: ActivePolicy;
}

/** A request that needs no key. */
export type Uncredentialed = Pick<Question, "active" | "rule" | keyof RequestValues>;

const TOO_OLD: edge.Verdict = { kind: "unknown", reason: "The data of the gate about API keys is too old." };

/** Verifies a key. Returns synchronously if the key is cached and nothing is counted, which is the case for most requests. */
export function verify(deps: VerifyDeps, question: Question): edge.Verdict | Promise<edge.Verdict> {
  return checkStaleness(deps, question) ?? edge.verify(deps, new GateVerification(deps, question));
}

/**
 * Returns whether an open connection may continue. Repeats all checks, but does not charge the counters again. If the key cannot be looked
 * up, the connection continues as long as the gate's data is fresh enough for the policy.
 */
export async function mayGoOn(deps: VerifyDeps, question: Question): Promise<boolean> {
  if (checkStaleness(deps, question) !== undefined) return false;
  const verdict = await edge.verifyAgain(deps, new GateVerification(deps, question));
  return verdict.kind !== "decided" || verdict.code === "VALID";
}

/** Returns a verdict if the gate's data is too stale to decide, otherwise `undefined`. */
function checkStaleness(deps: VerifyDeps, { active }: Question): edge.Verdict | undefined {
  const freshness = checkFreshness(active.policy.onStale, deps.projection.stalenessMs());
  if (freshness === "Expired") return TOO_OLD;
  if (freshness === "Stale") deps.onStaleDecision();
  return undefined;
}

/** Cache of the most recent plan per rule, for requests without a key. */
const lastPlans = new WeakMap<CompiledRule, RulePlan>();

/** Charges a request without a key to the limits of its rule. */
export async function count(deps: VerifyDeps, request: Uncredentialed): Promise<edge.Verdict> {
  const { active, rule } = request;
  const plan = planRule(undefined, rule, optionsOf(deps.workspaceId, request), lastPlans.get(rule));
  lastPlans.set(rule, plan);
  const counted = await charge(deps, { plan, withoutStore: active.policy });
  return counted.kind === "counted" ? { kind: "decided", code: counted.code, view: undefined, counted } : counted;
}

const optionsOf = (workspaceId: string, request: Uncredentialed): PlanOptions => ({
  workspaceId,
  request,
  audit: request.active.policy.mode === "Audit",
});

interface LastPlans {
  /** Serial number of the policy to which the plans belong; 0 before the first plan. */
  policy: number;
  /** Most recent plan for each rule, at index `rule + 1` because rule indexes start at −1. */
  byRule: (RulePlan | undefined)[];
}

/** Cache of the most recent plans per key: one for each rule, and only for the active policy. */
const lastPlansOfKey = KeyView.remember((): LastPlans => ({ policy: 0, byRule: [] }));

class GateVerification extends RuleVerification<Question> {
  override plan(view: KeyView): RulePlan {
    const { active, rule } = this.question;
    const last = lastPlansOfKey(view);
    if (last.policy !== active.serial) {
      last.policy = active.serial;
      last.byRule = [];
    }
    const at = rule.index + 1;
    const plan = planRule(view, rule, optionsOf(view.key.workspaceId, this.question), last.byRule[at]);
    last.byRule[at] = plan;
    return plan;
  }
}
