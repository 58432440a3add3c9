import { type CompiledRule, compileRules, type RuleMatcher } from "../policies/match-rule.ts";
import type { CompiledPolicy } from "../policies/policy.ts";
import { explainStale } from "./explain-stale.ts";
import type { Source, Step } from "./shapes.ts";
import { said } from "./step.ts";

/** The policy rule that a gate selects for a request before it checks the key. */
export interface ExplainedRule {
  readonly steps: Step[];
  /** Selected rule; `undefined` if the path itself is rejected, or the rule requires no key. */
  readonly rule: CompiledRule | undefined;
  /** Code of a request that needs no key check; `undefined` if a key is required. */
  readonly code: "MALFORMED" | "ANONYMOUS" | undefined;
  /** Index of the selected rule, −1 for the implicit rule; `undefined` if the path is rejected. */
  readonly index: number | undefined;
}

interface RequestedRequest {
  readonly method: string;
  readonly path: string;
  readonly source: Omit<Source, "kind">;
  readonly gatesAgeMs?: number | undefined;
}

/**
 * `path` may include a query string. `source` names the policy. `gatesAgeMs` is the maximum age of the gates' data; `undefined` if no gate
 * reports it.
 */
export function explainRule(
  policy: CompiledPolicy,
  { method, path, source, gatesAgeMs }: RequestedRequest,
  rules: RuleMatcher = compileRules(policy),
): ExplainedRule {
  const sources: Source[] = [{ kind: "policy", ...source }];
  const matched = rules.match(method, path);
  if ("refused" in matched) {
    const sentence = `The path is refused because ${matched.refused}.`;
    const step = { ...said("path", false, path, sentence), sources, decisive: true };
    return { steps: [step], rule: undefined, code: "MALFORMED", index: undefined };
  }
  const { rule } = matched;
  const isOpen = rule.access === "Anonymous";
  const steps: Step[] = [
    {
      ...said("path", true, `${method} ${matched.path}`, "The path is read as the app reads it."),
      sources,
      decisive: false,
    },
    { ...said("rule", true, nameRule(policy, rule), sayRule(policy, rule)), sources, decisive: isOpen },
  ];
  // Requests that require no key are admitted regardless of the age of the data.
  if (!isOpen) steps.push({ ...explainStale(policy, gatesAgeMs), sources, decisive: false });
  return { steps, rule: isOpen ? undefined : rule, code: isOpen ? "ANONYMOUS" : undefined, index: rule.index };
}

const nameRule = ({ rules }: CompiledPolicy, { index }: CompiledRule): string =>
  index < 0 ? "no rule" : `rule ${index + 1} of ${rules.length}`;

function sayRule({ rules }: CompiledPolicy, { index, access, creditCost, ratelimits }: CompiledRule): string {
  const stored = rules[index];
  if (stored === undefined) return `None of the ${rules.length} rules matches, so a valid key is needed.`;
  const { methods, path, permissions } = stored;
  const matched = [
    methods === undefined ? "every method" : methods.join(", "),
    path === undefined ? "every path" : "exact" in path ? `exactly ${path.exact}` : `what is under ${path.prefix}`,
  ].join(", ");
  const head = `Rule ${index + 1} of ${rules.length} is the first that matches (${matched})`;
  if (access === "Anonymous") return `${head}: requests pass without a key.`;
  const asked = [
    "a key",
    ...(permissions === undefined ? [] : [`the permissions ${permissions}`]),
    ...(creditCost === 0 ? [] : [`${creditCost} ${creditCost === 1 ? "credit" : "credits"} where they are limited`]),
    ...(ratelimits.length === 0
      ? []
      : [`room in ${ratelimits.length} ${ratelimits.length === 1 ? "limit" : "limits"}`]),
  ];
  return `${head}: it needs ${asked.join(", ")}.`;
}
