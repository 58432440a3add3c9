import type * as z from "zod";
import type { CompiledPolicy, PolicyRule, RuleRatelimit } from "../../policies/policy.ts";
import type { ApiKeyPolicySpec } from "../api-key-policy.ts";
import type { ManifestRule } from "../policy-rule.ts";
import { formatDuration } from "./format-duration.ts";

type SpecIn = z.input<typeof ApiKeyPolicySpec>;
type RuleIn = z.input<typeof ManifestRule>;

/** Returns a manifest's `spec` that `compilePolicy` compiles to this policy. Omits fields with their default value. */
export type PolicyFields = Omit<SpecIn, "api" | "target">;

/**
 * @param namespaceNames names of the rate-limit namespaces by id. If a name is missing, the manifest contains the id instead, which the
 * reader must replace.
 */
export function policyFieldsOf(
  policy: CompiledPolicy,
  namespaceNames: ReadonlyMap<string, string> = new Map(),
): PolicyFields {
  const { mode, credentials, rules, onStale, onCounterFailure, onCreditFailure, clientAddress, allowPaths } = policy;
  const { defaultAccess, failedAttempts } = policy;
  return {
    ...(mode === "Enforce" ? {} : { mode }),
    credentials: credentials.map((place) =>
      place.in === "query"
        ? { query: { name: place.name } }
        : { header: { name: place.name, ...(place.scheme === undefined ? {} : { scheme: place.scheme }) } },
    ),
    ...(rules.length === 0 ? {} : { rules: rules.map((rule) => ruleOf(rule, namespaceNames)) }),
    ...(defaultAccess === undefined ? {} : { defaultAccess }),
    ...(failedAttempts === undefined
      ? {}
      : { failedAttempts: { limit: failedAttempts.limit, duration: formatDuration(failedAttempts.durationMs) } }),
    onStale: {
      after: formatDuration(onStale.afterMs),
      action: onStale.action,
      denyAfter: formatDuration(onStale.denyAfterMs),
    },
    ...(onCounterFailure === "Local" ? {} : { onCounterFailure: counterFailureOf(onCounterFailure) }),
    ...(onCreditFailure === "Deny" ? {} : { onCreditFailure }),
    ...(clientAddress === undefined ? {} : { clientAddress: clientAddressOf(clientAddress) }),
    ...(allowPaths.length === 0 ? {} : { allowPaths: [...allowPaths] }),
  };
}

const counterFailureOf = (compiled: Exclude<CompiledPolicy["onCounterFailure"], "Local">) =>
  compiled === "LocalShare" ? ({ action: "Local", budget: "PerPod" } as const) : compiled;

function clientAddressOf(address: NonNullable<CompiledPolicy["clientAddress"]>): SpecIn["clientAddress"] {
  const { ipv6PrefixBits } = address;
  const prefix = ipv6PrefixBits === undefined ? {} : { ipv6PrefixBits };
  return address.from === "connection"
    ? { from: "Connection", ...prefix }
    : { from: "ForwardedFor", trustedProxies: [...address.trustedProxies], ...prefix };
}

function ruleOf(rule: PolicyRule, namespaceNames: ReadonlyMap<string, string>): RuleIn {
  const { name, methods, path, hosts, headers, access, permissions, creditCost, ratelimits } = rule;
  const match = {
    ...(methods === undefined ? {} : { methods: [...methods] }),
    ...(path === undefined ? {} : { path }),
    ...(hosts === undefined ? {} : { hosts: [...hosts] }),
    ...(headers === undefined
      ? {}
      : {
          headers: headers.map(({ name, exact }) =>
            exact === undefined ? { name, present: true as const } : { name, exact },
          ),
        }),
  };
  return {
    ...(name === undefined ? {} : { name }),
    ...(Object.keys(match).length === 0 ? {} : { match }),
    ...(access === "Key" ? {} : { access }),
    ...(permissions === undefined ? {} : { permissions }),
    ...(creditCost === 1 ? {} : { credits: { cost: creditCost } }),
    ...(ratelimits.length === 0 ? {} : { ratelimits: ratelimits.map((limit) => limitOf(limit, namespaceNames)) }),
  };
}

function limitOf(
  { scope, identifier, by, limit, durationMs, cost, accuracy }: RuleRatelimit,
  namespaceNames: ReadonlyMap<string, string>,
): NonNullable<RuleIn["ratelimits"]>[number] {
  return {
    ...(scope.kind === "name"
      ? { name: scope.name }
      : { namespace: namespaceNames.get(scope.namespaceId) ?? scope.namespaceId }),
    ...(by === undefined ? { identifier: identifier === "identity" ? "Identity" : "Key" } : { by: [...by] }),
    limit,
    duration: formatDuration(durationMs),
    ...(cost === 1 ? {} : { cost }),
    ...(accuracy === "local" ? { async: true } : {}),
  };
}
