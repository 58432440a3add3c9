import { parseQuery, QuerySyntaxError } from "../permissions/query.ts";
import type { CompiledPolicy, CredentialLocation, PolicyRule, RuleRatelimit } from "../policies/policy.ts";
import type { ApiKeyPolicySpec } from "./api-key-policy.ts";
import { parseDuration } from "./duration.ts";
import type { ManifestRule } from "./policy-rule.ts";

/** An error that only a changed manifest can fix. `location` is a path from the manifest's root, such as `spec.rules[0].match`. */
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
  const { onStale, clientAddress } = spec;
  return {
    formatVersion: 1,
    apiId,
    mode: spec.mode,
    credentials: compileCredentials(spec),
    rules,
    onStale: {
      afterMs: parseDuration(onStale.after),
      action: onStale.action,
      denyAfterMs: parseDuration(onStale.denyAfter),
    },
    onCounterFailure: compileCounterFailure(spec.onCounterFailure),
    onCreditFailure: spec.onCreditFailure,
    ...(clientAddress === undefined ? {} : { clientAddress: compileClientAddress(clientAddress) }),
    allowPaths: spec.allowPaths,
  };
}

/** Returns the distinct rate-limit namespaces that the policy's limits name. */
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
  const { match, access, permissions, credits } = rule;
  if (permissions !== undefined) {
    const problem = queryProblem(permissions);
    if (problem !== undefined) report(`${location}.permissions`, problem);
  }
  return {
    ...(match.methods === undefined ? {} : { methods: match.methods }),
    ...(match.path === undefined ? {} : { path: compilePath(match.path) }),
    access,
    ...(permissions === undefined ? {} : { permissions }),
    creditCost: credits?.cost ?? 1,
    ratelimits: compileRatelimits(rule.ratelimits, context),
  };
}

const compilePath = ({ prefix, exact }: NonNullable<ManifestRule["match"]["path"]>): NonNullable<PolicyRule["path"]> =>
  prefix === undefined ? { exact: exact ?? "/" } : { prefix };

function compileRatelimits(limits: ManifestRule["ratelimits"], context: RuleContext): RuleRatelimit[] {
  return limits.map((limit, index) => ({
    scope: scopeOf(limit, { ...context, location: `${context.location}.ratelimits[${index}]` }),
    identifier: limit.identifier === "Identity" ? "identity" : "key",
    limit: limit.limit,
    durationMs: parseDuration(limit.duration),
    cost: limit.cost,
    accuracy: limit.async ? "local" : "strict",
  }));
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
}: NonNullable<ApiKeyPolicySpec["clientAddress"]>): NonNullable<CompiledPolicy["clientAddress"]> {
  return from === "Connection" ? { from: "connection" } : { from: "forwardedFor", trustedProxies };
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
