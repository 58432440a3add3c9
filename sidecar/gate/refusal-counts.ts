import { type PodRefusals, RULE_COUNTS_MAX, type RuleCount } from "../../edge/pods/contract.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import type { Decision } from "./judge.ts";

/**
 * How many requests each rule of the policy in force has refused, or would have in Audit mode, by the decision. Begins at zero with each
 * policy, because rules are named by their place in it. At most a number for each rule and decision, however many callers there are.
 */
export class RefusalCounts {
  readonly #nowMs: () => number;
  #serial = 0;
  #sinceMs = 0;
  #byRule = new Map<number, Map<Decision, number>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `rule` is an index of the policy, −1 for the implicit rule, `BEFORE_RULES` when no rule was reached. */
  note(inForce: Pick<PolicyInForce, "serial">, rule: number, decision: Decision): void {
    // A request that began under the policy before is not counted: its rules are others.
    if (inForce.serial < this.#serial) return;
    this.#follow(inForce);
    let counts = this.#byRule.get(rule);
    if (counts === undefined) {
      counts = new Map();
      this.#byRule.set(rule, counts);
    }
    counts.set(decision, (counts.get(decision) ?? 0) + 1);
  }

  /** For the report: the largest counts by name, and the sum of all others. */
  of(inForce: Pick<PolicyInForce, "serial" | "policy">): PodRefusals {
    this.#follow(inForce);
    const all: RuleCount[] = [...this.#byRule].flatMap(([rule, counts]) =>
      [...counts].map(([code, count]) => ({ rule, code, count })),
    );
    all.sort((a, b) => b.count - a.count || a.rule - b.rule || (a.code < b.code ? -1 : 1));
    const others = all.slice(RULE_COUNTS_MAX).reduce((sum, { count }) => sum + count, 0);
    return { sinceMs: this.#sinceMs, mode: inForce.policy.mode, counts: all.slice(0, RULE_COUNTS_MAX), others };
  }

  #follow({ serial }: Pick<PolicyInForce, "serial">): void {
    if (serial === this.#serial) return;
    this.#serial = serial;
    this.#sinceMs = this.#nowMs();
    this.#byRule = new Map();
  }
}
