import { parseQuery, type Query } from "../permissions/query.ts";
import { canonicalRulePath, checkTarget } from "./check-path.ts";
import { foldPath, isFolded } from "./fold-path.ts";
import {
  type CompiledPolicy,
  HTTP_METHODS,
  type PathAllowance,
  type PolicyRule,
  type RuleRatelimit,
} from "./policy.ts";

/** A rule, prepared for matching requests. */
export interface CompiledRule {
  /** Index in the policy, from 0; −1 for the implicit rule, which applies if no other matches. */
  readonly index: number;
  readonly access: "Key" | "Anonymous";
  readonly query?: Query | undefined;
  readonly creditCost: number;
  readonly ratelimits: readonly RuleRatelimit[];
}

/** The rule for a request, with the matched path, which is also the forwarded path. `query` is empty or begins with `?`. */
export interface MatchedRule {
  readonly rule: CompiledRule;
  readonly path: string;
  readonly query: string;
}

export interface RuleMatcher {
  /** Whether two requests with the same method can have different requirements because of their path; `checkTarget` is then stricter. */
  readonly pathDecides: boolean;
  /**
   * Returns the first matching rule; if no rule matches, the implicit rule, which requires a valid key. `target` is the target of the
   * request line. `refused` is the error message for a 400: the path is invalid, or an app could read it as the path of a rule with other
   * requirements.
   */
  match(method: string, target: string): MatchedRule | RejectedPath;
}

/**
 * The rule for a request that matches no other rule. The rule requires a key, so a gate admits requests without a key only if a rule of the
 * policy allows this.
 */
export const IMPLICIT_RULE: CompiledRule = { index: -1, access: "Key", creditCost: 1, ratelimits: [] };

interface Candidate {
  readonly rule: CompiledRule;
  /** Text that is equal for rules with the same requirements. */
  readonly requirement: string;
  readonly exact?: string;
  /** Prefix without a trailing slash. The prefix `/` becomes the empty text, which matches every path. */
  readonly prefix?: string;
}

/** Rules that can match requests of one method, in order. */
interface Candidates {
  readonly strict: readonly Candidate[];
  /** The candidates with folded paths; `undefined` if the gate does not check for near matches. */
  readonly folded: readonly Candidate[] | undefined;
  /** Whether both lists are equal, so that a folded path need not be matched again. */
  readonly areFolded: boolean;
  readonly checksSuffix: boolean;
}

/**
 * Prepares a policy's rules: parses queries, normalizes paths like `checkTarget`, and lists for each method the rules that can match it, in
 * order. Throws `QuerySyntaxError` if a query is invalid, which cannot happen for a policy that was compiled from a manifest or accepted by
 * the API.
 */
export function compileRules(policy: Pick<CompiledPolicy, "rules" | "allowPaths">): RuleMatcher {
  const candidates = policy.rules.map((rule, index) => ({
    methods: rule.methods,
    candidate: compileCandidate({ rule, index, allowPaths: policy.allowPaths }),
  }));
  const forMethod = (method: string): Candidates => {
    const strict = candidates
      .filter(({ methods }) => methods === undefined || methods.some((one) => one === method))
      .map(({ candidate }) => candidate);
    const isChecked = (allowance: PathAllowance) => asksByPath(strict) && !policy.allowPaths.includes(allowance);
    return {
      strict,
      folded: isChecked("NearMatch") ? strict.map(foldCandidate) : undefined,
      checksSuffix: isChecked("Suffix"),
      areFolded: strict.every(({ exact, prefix }) => isFolded(exact ?? prefix ?? "")),
    };
  };
  const byMethod = new Map(HTTP_METHODS.map((method): [string, Candidates] => [method, forMethod(method)]));
  const otherMethods = forMethod("");
  const pathDecides = [...byMethod.values(), otherMethods].some(({ strict }) => asksByPath(strict));
  const options = { allow: policy.allowPaths, pathDecides };
  return {
    pathDecides,
    match: (method, target) => {
      const checked = checkTarget(target, options);
      if ("refused" in checked) return checked;
      const { path, query } = checked;
      const rule = matchPath(byMethod.get(method) ?? otherMethods, path);
      return "refused" in rule ? rule : { rule, path, query };
    },
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
  const candidate = { rule: compiled, requirement: requirementOf(compiled) };
  if (path === undefined) return candidate;
  // A path that no request can have keeps its trailing slashes, so it never matches.
  if ("exact" in path) {
    const canonical = canonicalRulePath(path.exact, allowPaths);
    return { ...candidate, exact: "path" in canonical ? canonical.path : path.exact };
  }
  const canonical = canonicalRulePath(path.prefix, allowPaths);
  return { ...candidate, prefix: "path" in canonical ? canonical.path.replace(/\/+$/, "") : path.prefix };
}

/** Matches a path against the candidates. `refused`: an app could read the path as the path of a rule with other requirements. */
function matchPath({ strict, folded, areFolded, checksSuffix }: Candidates, path: string): CompiledRule | RejectedPath {
  const found = firstMatch(strict, path);
  // Rules that require no key need no protection.
  const evades = ({ rule, requirement }: Candidate) => rule.access !== "Anonymous" && requirement !== found.requirement;
  if (folded !== undefined && !(areFolded && isFolded(path)) && evades(firstMatch(folded, foldPath(path)))) {
    return NEAR_MATCH;
  }
  if (!checksSuffix || !/[.%]/.test(path)) return found.rule;
  const [candidates, reading] =
    folded === undefined ? [strict, path.replace(/(?<!\/)\/$/, "")] : [folded, foldPath(path)];
  const stem = withoutSuffix(reading);
  const { exact, prefix } = firstMatch(candidates, reading);
  // A rule whose own path has the suffix applies only to paths with this suffix.
  const isNamed = (exact ?? prefix ?? "").length > stem.length;
  return stem !== reading && !isNamed && evades(firstMatch(candidates, folded === undefined ? stem : foldPath(stem)))
    ? SUFFIX
    : found.rule;
}

type RejectedPath = { readonly refused: string };
const NEAR_MATCH: RejectedPath = {
  refused:
    "an app may read the path as that of another rule (letter case, a slash, space or dot at an end, double encoding)",
};
const SUFFIX: RejectedPath = {
  refused: "an app may read the path as that of another rule, and its suffix as a format",
};

/** Removes the format suffix, because Rails serves `/admin` for `/admin.json` too. */
function withoutSuffix(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") + 1 ? path.slice(0, dot) : path;
}

function firstMatch(candidates: readonly Candidate[], path: string): Candidate {
  for (const candidate of candidates) {
    const { exact, prefix } = candidate;
    if (exact !== undefined) {
      if (exact === path) return candidate;
    } else if (prefix === undefined || isUnder(path, prefix)) {
      return candidate;
    }
  }
  return IMPLICIT;
}

/** Returns whether the reachable rules, including the implicit one, have different requirements. */
function asksByPath(candidates: readonly Candidate[]): boolean {
  const end = candidates.findIndex(matchesEveryPath);
  const reached = end === -1 ? [...candidates, IMPLICIT] : candidates.slice(0, end + 1);
  return new Set(reached.map(({ requirement }) => requirement)).size > 1;
}

const matchesEveryPath = ({ exact, prefix }: Candidate): boolean => exact === undefined && (prefix ?? "") === "";

function requirementOf({ access, query, creditCost, ratelimits }: CompiledRule): string {
  return access === "Anonymous" ? access : JSON.stringify([query, creditCost, ratelimits]);
}

const IMPLICIT: Candidate = { rule: IMPLICIT_RULE, requirement: requirementOf(IMPLICIT_RULE) };

const foldCandidate = ({ exact, prefix, ...candidate }: Candidate): Candidate => {
  if (exact !== undefined) return { ...candidate, exact: foldPath(exact) };
  return prefix === undefined ? candidate : { ...candidate, prefix: foldPath(prefix) };
};

const SLASH = 0x2f;

/** Compares complete segments: `/healthz` covers `/healthz` and `/healthz/a`, not `/healthz-admin`. */
function isUnder(path: string, prefix: string): boolean {
  if (!path.startsWith(prefix)) return false;
  return path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH;
}
