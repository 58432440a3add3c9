import { parseQuery, type Query } from "../permissions/query.ts";
import { checkTarget, decodePath } from "./check-path.ts";
import type { CompiledLimit } from "./counted-by.ts";
import { countedBy, isInvented, isOfKey } from "./counted-value.ts";
import { DistinctValues, distinctMaxOf, type SharedRequests } from "./distinct-values.ts";
import { foldPath, isFolded } from "./fold-path.ts";
import { HostSets } from "./match-host.ts";
import { addToSet, emptySet, PathTrie, type RuleSet } from "./path-trie.ts";
import { type CompiledPolicy, HTTP_METHODS, type PathAllowance, type PolicyRule } from "./policy.ts";
import { PARAMETER, parseRulePath, type RulePath, segmentsOf } from "./rule-path.ts";

/** A rule, prepared for matching requests. */
export interface CompiledRule {
  /** Index in the policy, from 0; −1 for the implicit rule, which applies if no other matches. */
  readonly index: number;
  readonly name?: string | undefined;
  readonly access: "Key" | "Anonymous" | "Deny";
  readonly query?: Query | undefined;
  readonly creditCost: number;
  readonly ratelimits: readonly CompiledLimit[];
  readonly path: RulePath;
}

/** The rule for a request, with the matched path, which is also the forwarded path. `query` is empty or begins with `?`. */
export interface MatchedRule {
  readonly rule: CompiledRule;
  readonly path: string;
  readonly query: string;
}

export interface RequestToMatch {
  readonly method: string;
  /** Target of the request line. */
  readonly target: string;
  /** Host in lower case, without a port (see `hostNameOf`). */
  readonly host: string;
  /** Values of the headers in `headerNames`, in that order; `undefined` for a missing header. */
  readonly headers: readonly (string | undefined)[];
}

export interface RuleMatcher {
  /** Whether two requests with the same method can have different requirements because of their path; `checkTarget` is then stricter. */
  readonly pathDecides: boolean;
  /** Headers that rules match or that limits count by, in lower case. */
  readonly headerNames: readonly string[];
  /** Headers that rules match. A request that has one of them twice is ambiguous. */
  readonly matchedHeaders: ReadonlySet<string>;
  /**
   * Returns the first matching rule; if no rule matches, the implicit rule. `refused` is the error message for a 400: the path is invalid,
   * or an app could interpret it so that it matches a rule with different requirements.
   */
  match(request: RequestToMatch): MatchedRule | RejectedPath;
}

export interface CompileOptions {
  /** Number of requests that were counted on a shared counter because their limit has too many identifiers. */
  readonly shared?: SharedRequests;
  /** Returns the current time, Unix ms. The limits on the number of identifiers apply to the window of this time. */
  readonly nowMs?: () => number;
}

type RulesOf = Pick<CompiledPolicy, "rules" | "allowPaths" | "defaultAccess">;

interface HeaderCondition {
  readonly at: number;
  readonly exact: string | undefined;
}

interface Candidate {
  readonly rule: CompiledRule;
  /** Text that identifies the requirements: rules with the same requirements have the same text. */
  readonly requirement: string;
  readonly headers: readonly HeaderCondition[];
  /** Whether the rule matches every request of its methods. */
  readonly isUnconditional: boolean;
}

/** Rules that can match requests of one method. */
interface OfMethod {
  readonly rules: RuleSet;
  readonly checksNearMatches: boolean;
  readonly checksSuffix: boolean;
}

/**
 * Prepares a policy's rules: parses queries and paths, and indexes the rules by path, method and host. Throws `QuerySyntaxError` or
 * `TemplateError` if a query or a template is invalid, which cannot happen for a policy that was compiled from a manifest or accepted by
 * the API.
 */
export function compileRules(policy: RulesOf, options: CompileOptions = {}): RuleMatcher {
  return new CompiledRules(policy, options);
}

class CompiledRules implements RuleMatcher {
  readonly pathDecides: boolean;
  readonly headerNames: readonly string[];
  readonly matchedHeaders: ReadonlySet<string>;
  readonly #candidates: readonly Candidate[];
  readonly #implicit: Candidate;
  readonly #strict: PathTrie;
  readonly #folded: PathTrie;
  /** Whether both tries find the same rules for a folded path. If so, a folded path is not matched again. */
  readonly #areFolded: boolean;
  readonly #hosts: HostSets | undefined;
  readonly #byMethod: ReadonlyMap<string, OfMethod>;
  readonly #otherMethods: OfMethod;
  readonly #allowPaths: readonly PathAllowance[];
  /** Rules that match the current path. One array serves all requests, because matching is synchronous. */
  readonly #found: RuleSet;

  constructor({ rules: stored, allowPaths, defaultAccess = "Key" }: RulesOf, options: CompileOptions) {
    const rules = stored.map(withoutKeyLimits);
    this.#allowPaths = allowPaths;
    this.matchedHeaders = new Set(rules.flatMap(({ headers = [] }) => headers.map(({ name }) => name.toLowerCase())));
    this.headerNames = headerNamesOf(rules, this.matchedHeaders);
    const limit = limitCompiler(rules, this.headerNames, options);
    this.#candidates = rules.map((rule, index) => {
      const compiled = compileRule({ rule, index, allowPaths, limit });
      const headers = (rule.headers ?? []).map(({ name, exact }) => ({
        at: this.headerNames.indexOf(name.toLowerCase()),
        exact,
      }));
      const isUnconditional = headers.length === 0 && rule.hosts === undefined && matchesEveryPath(compiled.path);
      return { rule: compiled, requirement: requirementOf(compiled, rule), headers, isUnconditional };
    });
    this.#implicit = implicitRule(defaultAccess);
    this.#strict = new PathTrie(rules.length);
    this.#folded = new PathTrie(rules.length);
    let areFolded = true;
    for (const { rule } of this.#candidates) {
      const folded = foldRulePath(rule.path);
      areFolded &&= isSamePath(rule.path, folded);
      this.#strict.add(rule.index, rule.path);
      this.#folded.add(rule.index, folded);
    }
    this.#areFolded = areFolded;
    this.#hosts = rules.some(({ hosts }) => hosts !== undefined)
      ? new HostSets(rules.map(({ hosts }) => hosts))
      : undefined;
    this.#byMethod = new Map(HTTP_METHODS.map((method) => [method, this.#rulesOf(rules, method)]));
    this.#otherMethods = this.#rulesOf(rules, undefined);
    this.pathDecides = [...HTTP_METHODS, undefined].some((method) => this.#asksByPath(rules, method));
    this.#found = emptySet(rules.length);
  }

  match({ method, target, host, headers }: RequestToMatch): MatchedRule | RejectedPath {
    const checked = checkTarget(target, { allow: this.#allowPaths, pathDecides: this.pathDecides });
    if ("refused" in checked) return checked;
    const { path, query } = checked;
    const request: Conditions = {
      ofMethod: this.#byMethod.get(method) ?? this.#otherMethods,
      hosts: this.#hosts?.find(host),
      headers,
    };
    const rule = this.#matchPath(path, request);
    return "refused" in rule ? rule : { rule, path, query };
  }

  /** Returns the rule, or `refused` if an app could interpret the path so that it matches a rule with different requirements. */
  #matchPath(path: string, request: Conditions): CompiledRule | RejectedPath {
    const { checksNearMatches, checksSuffix } = request.ofMethod;
    const found = this.#first(this.#strict, path, request);
    // A rule without requirements needs no protection from evasion.
    const evades = (other: Candidate) => other.requirement !== OPEN && other.requirement !== found.requirement;
    if (checksNearMatches && !(this.#areFolded && isFolded(path))) {
      // Many routers are lenient only about letter case and a trailing slash. Read by such a router, the path can match a different rule
      // than in the most lenient reading.
      for (const reading of [foldPath(path), ignoringCase(path)]) {
        if (evades(this.#first(this.#folded, reading, request))) return NEAR_MATCH;
      }
    }
    if (!checksSuffix || !/[.%]/.test(path)) return found.rule;
    const trie = checksNearMatches ? this.#folded : this.#strict;
    const reading = checksNearMatches ? foldPath(path) : path.replace(/(?<!\/)\/$/, "");
    const stem = withoutSuffix(reading);
    if (stem === reading || namesLastSegment(this.#first(trie, reading, request).rule.path, reading)) return found.rule;
    return evades(this.#first(trie, checksNearMatches ? foldPath(stem) : stem, request)) ? SUFFIX : found.rule;
  }

  #first(trie: PathTrie, path: string, { ofMethod, hosts, headers }: Conditions): Candidate {
    const found = this.#found;
    found.fill(0);
    trie.find(path, found);
    for (let word = 0; word < found.length; word++) {
      let bits = (found[word] as number) & (ofMethod.rules[word] as number);
      if (hosts !== undefined) bits &= hosts[word] as number;
      while (bits !== 0) {
        const lowest = bits & -bits;
        const candidate = this.#candidates[word * 32 + 31 - Math.clz32(lowest)] as Candidate;
        if (hasHeaders(candidate.headers, headers)) return candidate;
        bits &= bits - 1;
      }
    }
    return this.#implicit;
  }

  #rulesOf(rules: readonly PolicyRule[], method: string | undefined): OfMethod {
    const set = emptySet(rules.length);
    for (const [index, { methods }] of rules.entries()) if (appliesTo(methods, method)) addToSet(set, index);
    const isChecked = (allowance: PathAllowance) =>
      this.#asksByPath(rules, method) && !this.#allowPaths.includes(allowance);
    return { rules: set, checksNearMatches: isChecked("NearMatch"), checksSuffix: isChecked("Suffix") };
  }

  /** Returns whether requests of the method can reach rules with different requirements. The implicit rule counts as well. */
  #asksByPath(rules: readonly PolicyRule[], method: string | undefined): boolean {
    const candidates = this.#candidates.filter((_, index) => appliesTo(rules[index]?.methods, method));
    const end = candidates.findIndex(({ isUnconditional }) => isUnconditional);
    const reached = end === -1 ? [...candidates, this.#implicit] : candidates.slice(0, end + 1);
    return new Set(reached.map(({ requirement }) => requirement)).size > 1;
  }
}

/** Properties of a request, other than its path, that rules match. */
interface Conditions {
  readonly ofMethod: OfMethod;
  /** Rules for the request's host; `undefined` if no rule names hosts. */
  readonly hosts: RuleSet | undefined;
  readonly headers: RequestToMatch["headers"];
}

const appliesTo = (methods: PolicyRule["methods"], method: string | undefined): boolean =>
  methods === undefined || methods.some((one) => one === method);

function hasHeaders(conditions: readonly HeaderCondition[], values: RequestToMatch["headers"]): boolean {
  for (const { at, exact } of conditions) {
    const value = values[at];
    if (value === undefined || (exact !== undefined && value !== exact)) return false;
  }
  return true;
}

function headerNamesOf(rules: readonly PolicyRule[], matched: ReadonlySet<string>): string[] {
  const counted = rules.flatMap(({ ratelimits }) =>
    ratelimits.flatMap((limit) => countedBy(limit).flatMap(({ kind, name }) => (kind === "header" ? [name] : []))),
  );
  return [...new Set([...matched, ...counted])];
}

/**
 * Drops the limits of an anonymous rule that count keys, because its requests have no key. Format 1 allowed such limits, but its gates
 * ignore them. If they counted, all clients would share one counter, which would reject most requests.
 */
function withoutKeyLimits(rule: PolicyRule): PolicyRule {
  if (rule.access !== "Anonymous") return rule;
  return { ...rule, ratelimits: rule.ratelimits.filter((limit) => !countedBy(limit).some(isOfKey)) };
}

/** Returns a function that prepares one limit. */
function limitCompiler(
  rules: readonly PolicyRule[],
  headerNames: readonly string[],
  { shared = { count: 0 }, nowMs = Date.now }: CompileOptions,
): (limit: PolicyRule["ratelimits"][number]) => CompiledLimit {
  const isBounded = (limit: PolicyRule["ratelimits"][number]) => countedBy(limit).some(isInvented);
  const max = distinctMaxOf(rules.flatMap(({ ratelimits }) => ratelimits.filter(isBounded)).length);
  return ({ by: _, identifier: __, ...limit }) => {
    const by = countedBy({ by: _, identifier: __ });
    const { durationMs } = limit;
    return {
      ...limit,
      by,
      headerAt: by.map(({ kind, name }) => (kind === "header" ? headerNames.indexOf(name) : -1)),
      distinct: by.some(isInvented) ? new DistinctValues({ durationMs, max, shared, nowMs }) : undefined,
    };
  };
}

function compileRule({
  rule: { name, access, creditCost, ratelimits, permissions, path },
  index,
  allowPaths,
  limit,
}: {
  rule: PolicyRule;
  index: number;
  allowPaths: readonly PathAllowance[];
  limit: ReturnType<typeof limitCompiler>;
}): CompiledRule {
  return {
    index,
    ...(name === undefined ? {} : { name }),
    access,
    query: permissions === undefined ? undefined : parseQuery(permissions),
    creditCost,
    ratelimits: ratelimits.map(limit),
    path: parseRulePath(path, allowPaths),
  };
}

/** Requirement of a rule that admits every request. */
const OPEN = "Anonymous";

function requirementOf({ access, query, creditCost }: CompiledRule, { ratelimits }: Pick<PolicyRule, "ratelimits">) {
  if (access === "Deny" || (access === "Anonymous" && ratelimits.length === 0)) return access;
  return JSON.stringify([access, query, creditCost, ratelimits]);
}

/**
 * The rule for a request that matches no other rule. By default it requires a key, so a gate admits requests without a key only if the
 * policy says so.
 */
function implicitRule(access: CompiledRule["access"]): Candidate {
  const path = parseRulePath(undefined, []);
  const rule = { index: -1, access, creditCost: 1, ratelimits: [], path };
  return { rule, requirement: requirementOf(rule, rule), headers: [], isUnconditional: true };
}

type RejectedPath = { readonly refused: string };

const NEAR_MATCH: RejectedPath = {
  refused:
    "an app may read the path as that of another rule (letter case, a slash, space or dot at an end, double encoding)",
};
const SUFFIX: RejectedPath = {
  refused: "an app may read the path as that of another rule, and its suffix as a format",
};

/** Returns the path as read by a router that decodes it and ignores letter case and a trailing slash. */
function ignoringCase(path: string): string {
  const text = (decodePath(path) ?? path).toLowerCase();
  return text.endsWith("/") ? text.slice(0, -1) : text;
}

/** Removes the format suffix, because Rails serves `/admin` for `/admin.json` too. */
function withoutSuffix(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") + 1 ? path.slice(0, dot) : path;
}

/**
 * Returns whether the last segment of the path is a literal segment of the rule. A rule whose own path has a suffix applies only to paths
 * with that suffix.
 */
function namesLastSegment({ segments }: RulePath, path: string): boolean {
  return segments.at(-1) !== PARAMETER && segments.length > 0 && segments.length === segmentsOf(path).length;
}

const matchesEveryPath = ({ segments, ends }: RulePath): boolean => segments.length === 0 && ends === "hereOrBelow";

/**
 * Folds the literal segments of a rule's path. A lenient app may serve `/files` for `/files/`, so the folded path of `/files/{path...}`
 * also matches `/files`.
 */
function foldRulePath({ segments, ends, parameters }: RulePath): RulePath {
  const folded: RulePath["segments"][number][] = [];
  let literals: string[] = [];
  const foldLiterals = () => {
    const path = literals.length === 0 ? "" : foldPath(`/${literals.join("/")}`);
    if (path !== "") folded.push(...segmentsOf(path));
    literals = [];
  };
  for (const segment of segments) {
    if (segment === PARAMETER) {
      foldLiterals();
      folded.push(segment);
    } else literals.push(segment);
  }
  foldLiterals();
  return { segments: folded, ends: ends === "below" ? "hereOrBelow" : ends, parameters };
}

const isSamePath = (one: RulePath, other: RulePath): boolean =>
  one.ends === other.ends &&
  one.segments.length === other.segments.length &&
  one.segments.every((segment, at) => segment === other.segments[at]);
