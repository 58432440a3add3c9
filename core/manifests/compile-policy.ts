import { parseQuery, QuerySyntaxError } from "../permissions/query.ts";
import { canonicalRulePath } from "../policies/check-path.ts";
import type {
  CompiledPolicy,
  CredentialLocation,
  PathAllowance,
  PolicyRule,
  RuleRatelimit,
} from "../policies/policy.ts";
import { readProxyBlock } from "../policies/proxy-block.ts";
import type { ApiKeyPolicySpec } from "./api-key-policy.ts";
import { parseDuration } from "./duration.ts";
import type { ManifestRule } from "./policy-rule.ts";

/** Something that only a changed manifest can fix. `location` is a path from the manifest's root, such as `spec.rules[0].match`. */
export interface ManifestProblem {
  readonly location: string;
  readonly message: string;
}

/**
 * Makes the policy that sidecars enforce: names are resolved to ids, durations are milliseconds, queries and paths are checked.
 * Returns all problems at once. `spec` must have passed its schema. `namespaceIds` maps the names of rate-limit namespaces in the
 * store (see `namespacesOf`) to their ids.
 */
export function compilePolicy(
  spec: ApiKeyPolicySpec,
  { apiId, namespaceIds }: { apiId: string; namespaceIds: ReadonlyMap<string, string> },
): CompiledPolicy | ManifestProblem[] {
  const problems: ManifestProblem[] = [];
  const rules = spec.rules.map((rule, index) =>
    compileRule(rule, {
      location: `spec.rules[${index}]`,
      allowPaths: spec.allowPaths,
      namespaceIds,
      report: (location, message) => problems.push({ location, message }),
    }),
  );
  const { onStale, target, clientAddress } = spec;
  const afterMs = parseDuration(onStale.after);
  const denyAfterMs = parseDuration(onStale.denyAfter);
  if (denyAfterMs < afterMs) {
    problems.push({ location: "spec.onStale.denyAfter", message: "must not be shorter than spec.onStale.after" });
  }
  if (target.protocol !== "http1") {
    problems.push({
      location: "spec.target.protocol",
      message: "http1 is the only protocol that is supported for now",
    });
  }
  const credentials = compileCredentials(spec, problems);
  for (const [i, proxy] of (clientAddress?.trustedProxies ?? []).entries()) {
    if (readProxyBlock(proxy) !== undefined) continue;
    problems.push({
      location: `spec.clientAddress.trustedProxies[${i}]`,
      message: "expected an IP address or a CIDR block",
    });
  }
  if (problems.length > 0) return problems;
  return {
    formatVersion: 1,
    apiId,
    mode: spec.mode,
    credentials,
    rules,
    onStale: { afterMs, action: onStale.action, denyAfterMs },
    onCounterFailure: spec.onCounterFailure,
    onCreditFailure: spec.onCreditFailure,
    ...(clientAddress === undefined ? {} : { clientAddress: compileClientAddress(clientAddress) }),
    allowPaths: [...new Set(spec.allowPaths)],
  };
}

/** Returns the rate-limit namespaces that the policy's limits name, without duplicates. */
export function namespacesOf({ rules }: Pick<ApiKeyPolicySpec, "rules">): string[] {
  const names = rules.flatMap(({ ratelimits }) => ratelimits.map(({ namespace }) => namespace));
  return [...new Set(names.filter((name) => name !== undefined))];
}

interface RuleContext {
  readonly location: string;
  readonly allowPaths: readonly PathAllowance[];
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
    ...(match.path === undefined ? {} : { path: compilePath(match.path, context) }),
    access,
    ...(permissions === undefined ? {} : { permissions }),
    creditCost: credits?.cost ?? 1,
    ratelimits: compileRatelimits(rule.ratelimits, context),
  };
}

/** Checks and converts a path. A rule whose path no request can have would protect nothing, so it is reported. */
function compilePath(
  { prefix, exact }: NonNullable<ManifestRule["match"]["path"]>,
  { location, allowPaths, report }: RuleContext,
): NonNullable<PolicyRule["path"]> {
  const path = prefix ?? exact ?? "/";
  const checked = canonicalRulePath(path, allowPaths);
  if ("refused" in checked) {
    const field = prefix === undefined ? "exact" : "prefix";
    report(`${location}.match.path.${field}`, `no request can match this: ${checked.refused}`);
  }
  return prefix === undefined ? { exact: path } : { prefix: path };
}

function compileRatelimits(limits: ManifestRule["ratelimits"], context: RuleContext): RuleRatelimit[] {
  const counters = new Set<string>();
  return limits.map((limit, index) => {
    const location = `${context.location}.ratelimits[${index}]`;
    const durationMs = parseDuration(limit.duration);
    const identifier = limit.identifier ?? "key";
    const counter = JSON.stringify([limit.name, limit.namespace, identifier, durationMs]);
    if (counters.has(counter)) context.report(location, "counts on the same counter as a limit above it");
    counters.add(counter);
    return {
      scope: scopeOf(limit, { ...context, location }),
      identifier,
      limit: limit.limit,
      durationMs,
      cost: limit.cost,
      accuracy: limit.async ? "local" : "strict",
    };
  });
}

function scopeOf(
  { name, namespace }: ManifestRule["ratelimits"][number],
  { location, namespaceIds, report }: RuleContext,
): RuleRatelimit["scope"] {
  if (namespace === undefined) return { kind: "name", name: name ?? "" };
  const namespaceId = namespaceIds.get(namespace);
  if (namespaceId === undefined) {
    report(`${location}.namespace`, `there is no rate-limit namespace ${JSON.stringify(namespace)}`);
  }
  return { kind: "namespace", namespaceId: namespaceId ?? "" };
}

function compileCredentials({ credentials }: ApiKeyPolicySpec, problems: ManifestProblem[]): CredentialLocation[] {
  const seen = new Set<string>();
  return credentials.map(({ header, query }, index) => {
    const location = `spec.credentials[${index}]`;
    const place = header === undefined ? `?${query?.name}` : `${header.name}\n${header.scheme ?? ""}`.toLowerCase();
    if (seen.has(place)) problems.push({ location, message: "is the same place as one above it" });
    seen.add(place);
    if (header === undefined) return { in: "query", name: query?.name ?? "" };
    const { name, scheme } = header;
    return { in: "header", name, ...(scheme === undefined ? {} : { scheme }) };
  });
}

function compileClientAddress({
  from,
  trustedProxies = [],
}: NonNullable<ApiKeyPolicySpec["clientAddress"]>): NonNullable<CompiledPolicy["clientAddress"]> {
  return from === "Connection" ? { from: "connection" } : { from: "forwardedFor", trustedProxies };
}

function queryProblem(query: string): string | undefined {
  try {
    parseQuery(query);
    return undefined;
  } catch (error) {
    if (error instanceof QuerySyntaxError) return `the permission query does not parse. ${error.message}`;
    throw error;
  }
}
