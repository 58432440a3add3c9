import type { CompiledPolicy, PolicyRule } from "./policy.ts";

/**
 * Returns the lowest format in which gates enforce the policy completely. Gates of format 1 ignore the members that format 2 added, so they
 * would admit requests that a policy with such members rejects.
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
