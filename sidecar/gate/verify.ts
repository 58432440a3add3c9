import { judgeFreshness } from "../../core/policies/freshness.ts";
import { KeyView } from "../../core/verification/key-view.ts";
import type { ChargePlan } from "../../core/verification/plan-charges.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { type RuleQuestion, RuleVerification } from "../../edge/verification/rule-verification.ts";
import * as edge from "../../edge/verification/verify.ts";
import type { PolicyInForce } from "../policy/in-force.ts";

/*
 * Calls edge/verification for a rule of a policy: the gate's data must be fresh enough for the policy, the key must belong
 * to the policy's API, and the rule defines the required permissions and the charges.
 */

export interface VerifyParts extends edge.VerifyParts {
  readonly projection: Projection;
  readonly workspaceId: string;
  /** Called when the policy lets a request be served although the gate's data is stale. */
  readonly onDeparted: () => void;
}

export interface Question extends RuleQuestion {
  readonly inForce: PolicyInForce;
}

const TOO_OLD: edge.Verdict = { kind: "unknown", reason: "What the gate knows of API keys is too old." };

/** Returns at once for a cached key without counting, which is the case for most requests. */
export function verify(parts: VerifyParts, question: Question): edge.Verdict | Promise<edge.Verdict> {
  return judgeStaleness(parts, question) ?? edge.verify(parts, new GateVerification(parts, question));
}

/**
 * Whether an open connection may continue: all checks but the counters, which have been charged. A key that cannot
 * be looked up now does not end a connection, as long as the gate's data is not too stale for its policy.
 */
export async function mayGoOn(parts: VerifyParts, question: Question): Promise<boolean> {
  if (judgeStaleness(parts, question) !== undefined) return false;
  const verdict = await edge.verifyAgain(parts, new GateVerification(parts, question));
  return verdict.kind !== "decided" || verdict.code === "VALID";
}

/** The verdict when all data is too stale to decide. */
function judgeStaleness(parts: VerifyParts, { inForce }: Question): edge.Verdict | undefined {
  const freshness = judgeFreshness(inForce.policy.onStale, parts.projection.stalenessMs());
  if (freshness === "Denied") return TOO_OLD;
  if (freshness === "Departed") parts.onDeparted();
  return undefined;
}

interface KeptPlans {
  /** The serial number of the policy that the plans are for; 0 before the first. */
  policy: number;
  /** By the rule's index, from −1, plus one. */
  byRule: (ChargePlan | undefined)[];
}

/** A view and a rule do not change, so the plan of both is made once. Kept are those of one policy: the one in force. */
const keptPlans = KeyView.remember((): KeptPlans => ({ policy: 0, byRule: [] }));

class GateVerification extends RuleVerification<Question> {
  override plan(view: KeyView): ChargePlan {
    const { inForce, rule } = this.question;
    const kept = keptPlans(view);
    if (kept.policy !== inForce.serial) {
      kept.policy = inForce.serial;
      kept.byRule = [];
    }
    const at = rule.index + 1;
    let plan = kept.byRule[at];
    if (plan === undefined) {
      plan = super.plan(view);
      kept.byRule[at] = plan;
    }
    return plan;
  }
}
