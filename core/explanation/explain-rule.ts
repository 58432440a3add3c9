import type { RequestValues } from "../policies/counted-by.ts";
import { hostNameOf } from "../policies/match-host.ts";
import { type CompiledRule, compileRules, type RuleMatcher } from "../policies/match-rule.ts";
import type { CompiledPolicy, PolicyRule } from "../policies/policy.ts";
import { ambiguousHeaderIn, headersNamed, sayAmbiguousHeader } from "../policies/rule-headers.ts";
import { explainStale } from "./explain-stale.ts";
import type { Source, Step } from "./shapes.ts";
import { said } from "./step.ts";

/** Result of selecting the policy rule for a request. A gate selects the rule before it checks the key. */
export interface ExplainedRule {
  readonly steps: Step[];
  /** Selected rule if it requires a key or has limits; `undefined` for a request that is decided without either. */
  readonly rule: CompiledRule | undefined;
  /** Code of a request that is already decided; `undefined` if it still depends on the checks that `rule` requires. */
  readonly code: "MALFORMED" | "ANONYMOUS" | "DENIED" | undefined;
  /** Index of the selected rule, −1 for the implicit rule; `undefined` if the path is rejected. */
  readonly index: number | undefined;
  /** Name of the selected rule, if it has one. */
  readonly name: string | undefined;
  /** Values of the request that the limits of the rule may count by. */
  readonly values: Omit<RequestValues, "address">;
}

interface RequestedRequest {
  readonly method: string;
  readonly path: string;
  readonly host?: string | undefined;
  /** Alternating names and values. */
  readonly rawHeaders?: readonly string[] | undefined;
  readonly source: Omit<Source, "kind">;
  readonly gatesAgeMs?: number | undefined;
}

/**
 * `path` may include a query string. `source` names the policy. `gatesAgeMs` is the maximum age of the gates' data; `undefined` if no gate
 * reports it.
 */
export function explainRule(
  policy: CompiledPolicy,
  { method, path, host = "", rawHeaders = [], source, gatesAgeMs }: RequestedRequest,
  rules: RuleMatcher = compileRules(policy),
): ExplainedRule {
  const sources: Source[] = [{ kind: "policy", ...source }];
  const headers = headersNamed(rules.headerNames, rawHeaders);
  const head = { host: hostNameOf(host), ruleHeaders: headers };
  const matched = rules.match({ method, target: path, host: head.host, headers });
  if ("refused" in matched) {
    const sentence = `The path is refused because ${matched.refused}.`;
    const step = { ...said("path", false, path, sentence), sources, decisive: true };
    const values = { method, path, head };
    return { steps: [step], rule: undefined, code: "MALFORMED", index: undefined, name: undefined, values };
  }
  const { rule } = matched;
  const { index, name } = rule;
  const values = { method, path: matched.path, head };
  const ambiguous = ambiguousHeaderIn(rules.matchedHeaders, rawHeaders);
  const isOpen = rule.access !== "Key";
  const steps: Step[] = [
    {
      ...said("path", true, `${method} ${matched.path}`, "The path is read as the app reads it."),
      sources,
      decisive: false,
    },
  ];
  if (ambiguous !== undefined) {
    const step = said("rule", false, nameRule(policy, rule), sayAmbiguousHeader(ambiguous));
    steps.push({ ...step, sources, decisive: true });
    return { steps, rule: undefined, code: "MALFORMED", index, name, values };
  }
  steps.push({
    ...said("rule", rule.access !== "Deny", nameRule(policy, rule), sayRule(policy, rule)),
    sources,
    decisive: isOpen,
  });
  // Requests that require no key are admitted regardless of the age of the data.
  if (!isOpen) steps.push({ ...explainStale(policy, gatesAgeMs), sources, decisive: false });
  const code = { Key: undefined, Anonymous: "ANONYMOUS", Deny: "DENIED" } as const;
  const isDecided = isOpen && rule.ratelimits.length === 0;
  return {
    steps,
    index,
    name,
    values,
    ...(isDecided ? { rule: undefined, code: code[rule.access] } : { rule, code: undefined }),
  };
}

/**
 * Returns the steps of a request without a key: the steps of the rule, then those of its limits. If a limit step is decisive, no rule step
 * is.
 */
export function withLimitSteps(ofRule: readonly Step[], ofLimits: readonly Step[]): Step[] {
  const isDecided = ofLimits.some(({ decisive }) => decisive);
  return [...ofRule.map((step) => (isDecided ? { ...step, decisive: false } : step)), ...ofLimits];
}

const nameRule = ({ rules }: CompiledPolicy, { index, name }: CompiledRule): string =>
  index < 0 ? "no rule" : `rule ${index + 1} of ${rules.length}${name === undefined ? "" : ` (${name})`}`;

const IMPLICIT_ACCESS = {
  Key: "a valid key is needed",
  Anonymous: "requests pass without a key",
  Deny: "the request is denied",
};

function sayPath({ path }: PolicyRule): string {
  if (path === undefined) return "every path";
  if ("template" in path) return `paths like ${path.template}`;
  return "exact" in path ? `exactly ${path.exact}` : `what is under ${path.prefix}`;
}

function sayRule({ rules }: CompiledPolicy, { index, access, creditCost, ratelimits }: CompiledRule): string {
  const stored = rules[index];
  if (stored === undefined) return `None of the ${rules.length} rules matches, so ${IMPLICIT_ACCESS[access]}.`;
  const { methods, hosts, headers, permissions } = stored;
  const matched = [
    methods === undefined ? "every method" : methods.join(", "),
    sayPath(stored),
    ...(hosts === undefined ? [] : [`the host ${hosts.join(" or ")}`]),
    ...(headers ?? []).map(({ name, exact }) => `the header ${name}${exact === undefined ? "" : `: ${exact}`}`),
  ].join(", ");
  const head = `Rule ${index + 1} of ${rules.length} is the first that matches (${matched})`;
  if (access === "Deny") return `${head}: it denies every request.`;
  if (access === "Anonymous" && ratelimits.length === 0) return `${head}: requests pass without a key.`;
  const asked = [
    ...(access === "Anonymous" ? ["no key"] : ["a key"]),
    ...(permissions === undefined ? [] : [`the permissions ${permissions}`]),
    ...(creditCost === 0 || access === "Anonymous"
      ? []
      : [`${creditCost} ${creditCost === 1 ? "credit" : "credits"} where they are limited`]),
    ...(ratelimits.length === 0
      ? []
      : [`room in ${ratelimits.length} ${ratelimits.length === 1 ? "limit" : "limits"}`]),
  ];
  return `${head}: it needs ${asked.join(", ")}.`;
}
