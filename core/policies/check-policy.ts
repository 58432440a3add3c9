import { parseQuery, QuerySyntaxError } from "../permissions/query.ts";
import { countedBy, isOfKey } from "./counted-value.ts";
import type { CompiledPolicy, PolicyRule } from "./policy.ts";
import { parseRulePath, TemplateError } from "./rule-path.ts";

/** A reason why gates could not enforce a policy as it is meant. `location` is a path within the policy, such as `rules[0].path`. */
export interface PolicyProblem {
  readonly location: string;
  readonly message: string;
}

/** Checks what the schema of a compiled policy cannot express. */
export function checkPolicy(policy: CompiledPolicy): PolicyProblem[] {
  const lowest = formatOf(policy);
  const names = policy.rules.map(({ name }) => name);
  return [
    ...(policy.formatVersion >= lowest
      ? []
      : [{ location: "formatVersion", message: `expected ${lowest}, because the policy has members of that format` }]),
    ...(policy.failedAttempts === undefined || policy.clientAddress !== undefined
      ? []
      : [{ location: "failedAttempts", message: "requires clientAddress" }]),
    ...policy.rules.flatMap((rule, index) => {
      const repeats = rule.name !== undefined && names.indexOf(rule.name) < index;
      const problems = [
        ...(repeats ? [{ location: "name", message: "expected a name that no other rule has" }] : []),
        ...checkRule(rule, policy),
      ];
      return problems.map(({ location, message }) => ({ location: `rules[${index}].${location}`, message }));
    }),
  ];
}

/**
 * Returns the lowest format in which gates enforce the policy completely. Gates of format 1 ignore the members that format 2 added, so they
 * would admit requests that such a policy rejects.
 */
export function formatOf(policy: Omit<CompiledPolicy, "formatVersion">): 1 | 2 {
  const { defaultAccess, failedAttempts, clientAddress, rules } = policy;
  const isSecond =
    defaultAccess !== undefined ||
    failedAttempts !== undefined ||
    clientAddress?.ipv6PrefixBits !== undefined ||
    rules.some(isOfSecondFormat);
  return isSecond ? 2 : 1;
}

const isOfSecondFormat = ({ name, path, hosts, headers, access, ratelimits }: PolicyRule): boolean =>
  name !== undefined ||
  hosts !== undefined ||
  headers !== undefined ||
  access === "Deny" ||
  (path !== undefined && "template" in path) ||
  ratelimits.some(({ by }) => by !== undefined || access === "Anonymous");

function checkRule({ path, permissions, access, ratelimits }: PolicyRule, policy: CompiledPolicy): PolicyProblem[] {
  const problems: PolicyProblem[] = [];
  const report = (location: string, message: string) => problems.push({ location, message });
  try {
    if (permissions !== undefined) parseQuery(permissions);
  } catch (error) {
    if (!(error instanceof QuerySyntaxError)) throw error;
    report("permissions", error.message);
  }
  let parameters: ReadonlyMap<string, unknown> = new Map();
  try {
    parameters = parseRulePath(path, policy.allowPaths).parameters;
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    report("path.template", error.message);
  }
  for (const [index, limit] of ratelimits.entries()) {
    for (const value of countedBy(limit)) {
      const { kind, name } = value;
      const location = `ratelimits[${index}].${limit.by === undefined ? "identifier" : "by"}`;
      if (isOfKey(value) && access === "Anonymous") {
        report(location, "an Anonymous rule cannot count by key or identity, because its requests have no key");
      }
      if (kind === "address" && policy.clientAddress === undefined) report(location, "address requires clientAddress");
      if (kind === "path" && !parameters.has(name)) report(location, `the template has no parameter {${name}}`);
    }
  }
  return problems;
}
