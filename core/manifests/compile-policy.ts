import { parseQuery, QuerySyntaxError } from "../permissions/query.ts";
import type { CompiledPolicy, CredentialLocation, PathMatch, PolicyRule, RuleRatelimit } from "../policies/policy.ts";
import { formatOf } from "../policies/policy-format.ts";
import { parseTemplate } from "../policies/rule-path.ts";
import type { ApiKeyPolicySpec } from "./api-key-policy.ts";
import { parseDuration } from "./duration.ts";
import type { ManifestRule } from "./policy-rule.ts";

/** An error that only a change of the manifest can fix. `location` is a path from the manifest's root, such as `spec.rules[0].match`. */
export interface ManifestProblem {
  readonly location: string;
  readonly message: string;
}

/**
 * Compiles the policy that sidecars enforce: resolves names to ids, converts durations to milliseconds, and checks permission queries,
 * because no schema can express their grammar. Returns all problems together. `spec` must have passed its schema. `namespaceIds` maps the
 * names of rate-limit namespaces in the database (see `namespacesOf`) to their ids.
 */
export function compilePolicy(
  spec: ApiKeyPolicySpec,
  { apiId, namespaceIds }: { apiId: string; namespaceIds: ReadonlyMap<string, string> },
): CompiledPolicy | ManifestProblem[] {
  const problems: ManifestProblem[] = [];
  const rules = spec.rules.map((rule, index) =>
    compileRule(rule, {
      location: `spec.rules[${index}]`,
      namespaceIds,
      report: (location, message) => problems.push({ location, message }),
    }),
  );
  if (problems.length > 0) return problems;
  const { clientAddress, defaultAccess, failedAttempts } = spec;
  const policy = {
    apiId,
    mode: spec.mode,
    credentials: compileCredentials(spec),
    rules,
    onStale: compileOnStale(spec),
    onCounterFailure: compileCounterFailure(spec.onCounterFailure),
    onCreditFailure: spec.onCreditFailure,
    ...(clientAddress === undefined ? {} : { clientAddress: compileClientAddress(clientAddress) }),
    allowPaths: spec.allowPaths,
    ...(defaultAccess === "Key" ? {} : { defaultAccess }),
    ...(failedAttempts === undefined
      ? {}
      : { failedAttempts: { limit: failedAttempts.limit, durationMs: parseDuration(failedAttempts.duration) } }),
  };
  return { formatVersion: formatOf(policy), ...policy };
}

export const compileOnStale = ({ onStale }: Pick<ApiKeyPolicySpec, "onStale">): CompiledPolicy["onStale"] => ({
  afterMs: parseDuration(onStale.after),
  action: onStale.action,
  denyAfterMs: parseDuration(onStale.denyAfter),
});

/** Returns the distinct names of rate-limit namespaces in the policy's limits. */
export function namespacesOf({ rules }: Pick<ApiKeyPolicySpec, "rules">): string[] {
  const names = rules.flatMap(({ ratelimits }) => ratelimits.map(({ namespace }) => namespace));
  return [...new Set(names.filter((name) => name !== undefined))];
}

interface RuleContext {
  readonly location: string;
  readonly namespaceIds: ReadonlyMap<string, string>;
  readonly report: (location: string, message: string) => void;
}

function compileRule(rule: ManifestRule, context: RuleContext): PolicyRule {
  const { location, report } = context;
  const { name, match, access, permissions, credits } = rule;
  if (permissions !== undefined) {
    const problem = queryProblem(permissions);
    if (problem !== undefined) report(`${location}.permissions`, problem);
  }
  return {
    ...(name === undefined ? {} : { name }),
    ...(match.methods === undefined ? {} : { methods: match.methods }),
    ...(match.path === undefined ? {} : { path: compilePath(match.path) }),
    ...(match.hosts === undefined ? {} : { hosts: match.hosts }),
    ...(match.headers === undefined
      ? {}
      : { headers: match.headers.map(({ name, exact }) => (exact === undefined ? { name } : { name, exact })) }),
    access,
    ...(permissions === undefined ? {} : { permissions }),
    creditCost: credits?.cost ?? 1,
    ratelimits: compileRatelimits(rule, context),
  };
}

function compilePath({ prefix, exact, template }: NonNullable<ManifestRule["match"]["path"]>): PathMatch {
  if (template !== undefined) return { template };
  return prefix === undefined ? { exact: exact ?? "/" } : { prefix };
}

function compileRatelimits({ match, ratelimits }: ManifestRule, context: RuleContext): RuleRatelimit[] {
  return ratelimits.map((limit, index) => {
    const location = `${context.location}.ratelimits[${index}]`;
    checkParameters(limit, match.path?.template ?? "", { ...context, location });
    return {
      scope: scopeOf(limit, { ...context, location }),
      ...compileCountedBy(limit),
      limit: limit.limit,
      durationMs: parseDuration(limit.duration),
      cost: limit.cost,
      accuracy: limit.async ? "local" : "strict",
    };
  });
}

/** Reports `path.NAME` parameters that are missing from the rule's template. In CEL, this check would exceed the cost budget. */
function checkParameters(
  { by = [] }: ManifestRule["ratelimits"][number],
  template: string,
  { location, report }: RuleContext,
): void {
  const { parameters } = parseTemplate(template, []);
  for (const [at, value] of by.entries()) {
    const name = value.startsWith("path.") ? value.slice("path.".length) : undefined;
    if (name !== undefined && !parameters.has(name)) {
      report(`${location}.by[${at}]`, `match.path.template has no parameter {${name}}`);
    }
  }
}

/** `by: [key]` and `by: [identity]` are compiled to the equivalent `identifier`, which gates of every version understand. */
function compileCountedBy({
  identifier = "Key",
  by = [identifier.toLowerCase()],
}: ManifestRule["ratelimits"][number]): Pick<RuleRatelimit, "identifier" | "by"> {
  const [first] = by;
  return by.length === 1 && (first === "key" || first === "identity") ? { identifier: first } : { by };
}

function scopeOf(
  { name, namespace }: ManifestRule["ratelimits"][number],
  { location, namespaceIds, report }: RuleContext,
): RuleRatelimit["scope"] {
  if (namespace === undefined) return { kind: "name", name: name ?? "" };
  const namespaceId = namespaceIds.get(namespace);
  if (namespaceId === undefined) {
    report(`${location}.namespace`, `the rate-limit namespace ${JSON.stringify(namespace)} does not exist`);
  }
  return { kind: "namespace", namespaceId: namespaceId ?? "" };
}

function compileCredentials({ credentials }: ApiKeyPolicySpec): CredentialLocation[] {
  return credentials.map(({ header, query }) => {
    if (header === undefined) return { in: "query", name: query?.name ?? "" };
    const { name, scheme } = header;
    return { in: "header", name, ...(scheme === undefined ? {} : { scheme }) };
  });
}

function compileCounterFailure(given: ApiKeyPolicySpec["onCounterFailure"]): CompiledPolicy["onCounterFailure"] {
  if (typeof given === "string") return given;
  return "budget" in given ? "LocalShare" : given.action;
}

function compileClientAddress({
  from,
  trustedProxies = [],
  ipv6PrefixBits,
}: NonNullable<ApiKeyPolicySpec["clientAddress"]>): NonNullable<CompiledPolicy["clientAddress"]> {
  const prefix = ipv6PrefixBits === 64 ? {} : { ipv6PrefixBits };
  return from === "Connection"
    ? { from: "connection", ...prefix }
    : { from: "forwardedFor", trustedProxies, ...prefix };
}

/** Returns why a permission query is invalid; `undefined` if it is valid. */
export function queryProblem(query: string): string | undefined {
  try {
    parseQuery(query);
    return undefined;
  } catch (error) {
    if (error instanceof QuerySyntaxError) return `the permission query is invalid. ${error.message}`;
    throw error;
  }
}
