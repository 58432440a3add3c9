import { type PodRefusals, RULE_COUNTS_MAX, type RuleCount } from "../../edge/pods/contract.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { Decision } from "./evaluate-head.ts";

/**
 * Counts, per rule and decision, the requests that the active policy has rejected, or would have rejected in Enforce mode. Counts restart
 * at zero for each policy, because a rule's index identifies the rule only within its policy. The number of counters depends only on rules
 * and decisions, so clients cannot increase it.
 */
export class RefusalCounts {
  readonly #nowMs: () => number;
  #serial = 0;
  #sinceMs = 0;
  #byRule = new Map<number, Map<Decision, number>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Counts a rejection. `rule` is an index in the policy, −1 for the implicit rule, or `BEFORE_RULES` if no rule was reached. */
  note(active: Pick<ActivePolicy, "serial">, rule: number, decision: Decision): void {
    // Skips a request that began under the previous policy, in which the same index may identify another rule.
    if (active.serial < this.#serial) return;
    this.#follow(active);
    let counts = this.#byRule.get(rule);
    if (counts === undefined) {
      counts = new Map();
      this.#byRule.set(rule, counts);
    }
    counts.set(decision, (counts.get(decision) ?? 0) + 1);
  }

  /** Returns every count. */
  all(active: Pick<ActivePolicy, "serial">): RuleCount[] {
    this.#follow(active);
    return [...this.#byRule].flatMap(([rule, counts]) => [...counts].map(([code, count]) => ({ rule, code, count })));
  }

  /** Returns the report of this pod: the largest counts individually, and the sum of all others. */
  of(active: Pick<ActivePolicy, "serial" | "policy">): PodRefusals {
    const all = this.all(active);
    all.sort((a, b) => b.count - a.count || a.rule - b.rule || (a.code < b.code ? -1 : 1));
    const others = all.slice(RULE_COUNTS_MAX).reduce((sum, { count }) => sum + count, 0);
    return { sinceMs: this.#sinceMs, mode: active.policy.mode, counts: all.slice(0, RULE_COUNTS_MAX), others };
  }

  #follow({ serial }: Pick<ActivePolicy, "serial">): void {
    if (serial === this.#serial) return;
    this.#serial = serial;
    this.#sinceMs = this.#nowMs();
    this.#byRule = new Map();
  }
}
