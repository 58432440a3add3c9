import { parseQuery, type Query } from "../permissions/query.ts";
import { canonicalRulePath } from "./check-path.ts";
import { type CompiledPolicy, HTTP_METHODS, type PolicyRule, type RuleRatelimit } from "./policy.ts";

/** A rule, prepared for matching requests. */
export interface CompiledRule {
  /** Index in the policy, from 0; −1 for the implicit rule, which applies when no other matches. */
  readonly index: number;
  readonly access: "Key" | "Anonymous";
  readonly query?: Query | undefined;
  readonly creditCost: number;
  readonly ratelimits: readonly RuleRatelimit[];
}

export interface RuleMatcher {
  /** Whether two requests with the same method can have different requirements because of their path; checkTarget is then stricter. */
  readonly pathDecides: boolean;
  /**
   * Returns the first rule that matches, otherwise the implicit one, which requires a valid key. `path` is the result of
   * checkTarget, without the query.
   */
  match(method: string, path: string): CompiledRule;
}

/** Applies to a request that no rule matches: without a rule that opens it, a gate is closed. */
export const IMPLICIT_RULE: CompiledRule = { index: -1, access: "Key", creditCost: 1, ratelimits: [] };

interface Candidate {
  readonly rule: CompiledRule;
  readonly exact?: string;
  /** Without a trailing slash, so that the prefix `/` is empty and matches every path. */
  readonly prefix?: string;
}

/**
 * Prepares a policy's rules: parses queries, normalizes paths as checkTarget does, and lists for each method the rules that can
 * match it, in order. Throws QuerySyntaxError if a query does not parse, which cannot happen for a policy that was compiled from a
 * manifest or accepted by the API.
 */
export function compileRules(policy: Pick<CompiledPolicy, "rules" | "allowPaths">): RuleMatcher {
  const candidates = policy.rules.map((rule, index) => ({
    methods: rule.methods,
    candidate: compileCandidate({ rule, index, allowPaths: policy.allowPaths }),
  }));
  const forMethod = (method: string): Candidate[] =>
    candidates
      .filter(({ methods }) => methods === undefined || methods.some((one) => one === method))
      .map(({ candidate }) => candidate);
  const byMethod = new Map<string, Candidate[]>(HTTP_METHODS.map((method) => [method, forMethod(method)]));
  const otherMethods = forMethod("");
  return {
    pathDecides: [...byMethod.values(), otherMethods].some(asksByPath),
    match: (method, path) => firstMatch(byMethod.get(method) ?? otherMethods, path),
  };
}

function compileCandidate({
  rule,
  index,
  allowPaths,
}: {
  rule: PolicyRule;
  index: number;
  allowPaths: CompiledPolicy["allowPaths"];
}): Candidate {
  const { access, creditCost, ratelimits, permissions, path } = rule;
  const query = permissions === undefined ? undefined : parseQuery(permissions);
  const compiled: CompiledRule = { index, access, query, creditCost, ratelimits };
  if (path === undefined) return { rule: compiled };
  // A path that no request can have is kept as it is, with its trailing slashes, and so matches nothing.
  if ("exact" in path) {
    const canonical = canonicalRulePath(path.exact, allowPaths);
    return { rule: compiled, exact: "path" in canonical ? canonical.path : path.exact };
  }
  const canonical = canonicalRulePath(path.prefix, allowPaths);
  return { rule: compiled, prefix: "path" in canonical ? canonical.path.replace(/\/+$/, "") : path.prefix };
}

function firstMatch(candidates: readonly Candidate[], path: string): CompiledRule {
  for (const { rule, exact, prefix } of candidates) {
    if (exact !== undefined) {
      if (exact === path) return rule;
    } else if (prefix === undefined || isUnder(path, prefix)) {
      return rule;
    }
  }
  return IMPLICIT_RULE;
}

/** Whether the reachable rules, the implicit one included, have different requirements. */
function asksByPath(candidates: readonly Candidate[]): boolean {
  const end = candidates.findIndex(matchesEveryPath);
  const reached =
    end === -1
      ? [...candidates.map(({ rule }) => rule), IMPLICIT_RULE]
      : candidates.slice(0, end + 1).map(({ rule }) => rule);
  return new Set(reached.map(requirementOf)).size > 1;
}

const matchesEveryPath = ({ exact, prefix }: Candidate): boolean => exact === undefined && (prefix ?? "") === "";

const requirementOf = ({ access, query, creditCost, ratelimits }: CompiledRule): string =>
  access === "Anonymous" ? access : JSON.stringify([query, creditCost, ratelimits]);

const SLASH = 0x2f;

/** Whole segments: `/healthz` covers `/healthz` and `/healthz/a`, not `/healthz-admin`. */
function isUnder(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false;
  return path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH;
}
