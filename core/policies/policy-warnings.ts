import { type HostPattern, parseHostPattern } from "./match-host.ts";
import { type CompiledPolicy, HTTP_METHODS, type PolicyRule } from "./policy.ts";
import { PARAMETER, parseRulePath, type RulePath } from "./rule-path.ts";

/*
 * Warnings about rules that are valid but probably not what their author meant. Both kinds of warning are certain: no request reaches a
 * rule that is reported as shadowed, and no rule matches a method that is reported as unguarded.
 */

/** A warning about a rule. `rule` is the index of the rule, from 0. */
export interface RuleWarning {
  readonly rule: number;
  readonly message: string;
}

type RulesOf = Pick<CompiledPolicy, "rules" | "allowPaths" | "defaultAccess">;

export function policyWarnings({ rules, allowPaths, defaultAccess = "Key" }: RulesOf): RuleWarning[] {
  const parsed = rules.map((rule) => parseRule(rule, allowPaths));
  const shadowed = parsed.flatMap((rule, index) => {
    const by = shadowing(rule, parsed.slice(0, index));
    return by === undefined ? [] : [{ rule: index, message: sayShadowed(by.map((one) => sayRule(rules, one))) }];
  });
  const isShadowed = new Set(shadowed.map(({ rule }) => rule));
  if (defaultAccess === "Deny") return shadowed;
  const unguarded = unguardedRules(rules, parsed, isShadowed).map(({ rule, methods }) => ({
    rule,
    message: sayUnguarded(methods, defaultAccess),
  }));
  return [...shadowed, ...unguarded].sort((one, other) => one.rule - other.rule);
}

/** A method, or `undefined` for all methods that a rule cannot name, such as PURGE. */
type Method = (typeof HTTP_METHODS)[number] | undefined;
const METHODS: readonly Method[] = [...HTTP_METHODS, undefined];

interface ParsedRule {
  readonly methods: ReadonlySet<Method>;
  readonly path: RulePath;
  /** `undefined`: every host. */
  readonly hosts: readonly HostPattern[] | undefined;
  readonly headers: ReadonlyArray<{ readonly name: string; readonly exact: string | undefined }>;
}

const parseRule = ({ methods, path, hosts, headers = [] }: PolicyRule, allow: RulesOf["allowPaths"]): ParsedRule => ({
  methods: new Set(methods ?? METHODS),
  path: parseRulePath(path, allow),
  hosts: hosts?.map(parseHostPattern),
  headers: headers.map(({ name, exact }) => ({ name: name.toLowerCase(), exact })),
});

/**
 * Returns the earlier rules that together match all requests of a rule; `undefined` if a request may reach the rule. For each method and
 * host of the rule, one of them must match all of the rule's paths and headers.
 */
function shadowing(rule: ParsedRule, earlier: readonly ParsedRule[]): number[] | undefined {
  const wider = earlier.flatMap((one, index) =>
    coversPath(one.path, rule.path) && coversHeaders(one, rule) ? [{ ...one, index }] : [],
  );
  if (wider.length === 0) return undefined;
  const found = new Set<number>();
  for (const host of rule.hosts ?? [undefined]) {
    const ofHost = wider.filter(({ hosts }) => coversHost(hosts, host));
    for (const method of rule.methods) {
      const one = ofHost.find(({ methods }) => methods.has(method));
      if (one === undefined) return undefined;
      found.add(one.index);
    }
  }
  return [...found].sort((one, other) => one - other);
}

/** Returns whether `wide` matches every path that `narrow` matches. A parameter matches any segment that is not empty. */
function coversPath(wide: RulePath, narrow: RulePath): boolean {
  const { length } = wide.segments;
  if (length > narrow.segments.length) return false;
  const hasSegments = wide.segments.every((segment, at) => {
    const other = narrow.segments[at];
    return segment === other || (segment === PARAMETER && other !== "");
  });
  if (!hasSegments) return false;
  if (length < narrow.segments.length) return wide.ends !== "here";
  return wide.ends === "hereOrBelow" || wide.ends === narrow.ends;
}

/** Returns whether some path matches both. */
function pathsMeet(one: RulePath, other: RulePath): boolean {
  const [short, long] = one.segments.length <= other.segments.length ? [one, other] : [other, one];
  const hasSegments = short.segments.every((segment, at) => {
    const facing = long.segments[at];
    return segment === facing || (segment === PARAMETER && facing !== "") || (facing === PARAMETER && segment !== "");
  });
  if (!hasSegments) return false;
  if (short.segments.length < long.segments.length) return short.ends !== "here";
  return short.ends === long.ends || short.ends === "hereOrBelow" || long.ends === "hereOrBelow";
}

const isBelow = (name: string, parent: string): boolean => name.endsWith(`.${parent}`);

function coversHost(wide: ParsedRule["hosts"], narrow: HostPattern | undefined): boolean {
  if (wide === undefined) return true;
  if (narrow === undefined) return false;
  return wide.some((pattern) =>
    pattern.isBelow
      ? isBelow(narrow.name, pattern.name) || (narrow.isBelow && narrow.name === pattern.name)
      : !narrow.isBelow && narrow.name === pattern.name,
  );
}

const hostsMeet = (one: ParsedRule["hosts"], other: ParsedRule["hosts"]): boolean =>
  one === undefined ||
  other === undefined ||
  one.some((host) => coversHost(other, host)) ||
  other.some((host) => coversHost(one, host));

/** Returns whether every request with the headers of `narrow` also has the headers of `wide`. */
const coversHeaders = (wide: Pick<ParsedRule, "headers">, narrow: Pick<ParsedRule, "headers">): boolean =>
  wide.headers.every(({ name, exact }) =>
    narrow.headers.some((header) => header.name === name && (exact === undefined || header.exact === exact)),
  );

/**
 * Returns rules that guard only some methods of a path, if no rule matches the other methods. Returns only the first of several rules with
 * the same path and hosts.
 */
function unguardedRules(
  rules: readonly PolicyRule[],
  parsed: readonly ParsedRule[],
  isShadowed: ReadonlySet<number>,
): { readonly rule: number; readonly methods: readonly Method[] }[] {
  const seen = new Set<string>();
  return rules.flatMap((rule, index) => {
    const { path, hosts } = parsed[index] as ParsedRule;
    if (rule.methods === undefined || isShadowed.has(index) || !isGuarded(rule, path)) return [];
    const place = JSON.stringify([rule.path, rule.hosts]);
    if (seen.has(place)) return [];
    seen.add(place);
    const meeting = parsed.filter((one) => pathsMeet(one.path, path) && hostsMeet(one.hosts, hosts));
    const methods = METHODS.filter((method) => !meeting.some((one) => one.methods.has(method)));
    return methods.length === 0 ? [] : [{ rule: index, methods }];
  });
}

/** A rule that denies a method such as TRACE on every path does not imply that the other methods need a rule. */
function isGuarded({ access, permissions, ratelimits }: PolicyRule, { segments, ends }: RulePath): boolean {
  if (access === "Deny") return segments.length > 0 || ends !== "hereOrBelow";
  return access === "Key" && (permissions !== undefined || ratelimits.length > 0);
}

/** Formats a rule: `rules[1] (refund)`. */
function sayRule(rules: readonly PolicyRule[], index: number): string {
  const name = rules[index]?.name;
  return `rules[${index}]${name === undefined ? "" : ` (${name})`}`;
}

const sayShadowed = (by: readonly string[]): string =>
  by.length === 1
    ? `no request reaches this rule, because ${by[0]} matches all of its requests; move this rule up, or remove it`
    : `no request reaches this rule, because ${sayList(by)} together match all of its requests; move this rule up, or remove it`;

function sayUnguarded(methods: readonly Method[], access: "Key" | "Anonymous"): string {
  const named = methods.filter((method) => method !== undefined);
  const list = sayList([...named, ...(methods.includes(undefined) ? ["methods that a rule cannot name"] : [])]);
  const passes = access === "Key" ? "with any key of the API" : "without a key";
  return `on its path, no rule matches ${list}, so these requests pass ${passes}; add a rule, or set defaultAccess: Deny`;
}

const sayList = (texts: readonly string[]): string =>
  texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
