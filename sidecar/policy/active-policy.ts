import type { SharedRequests } from "../../core/policies/distinct-values.ts";
import { compileRules, type RuleMatcher } from "../../core/policies/match-rule.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type PolicyRecord, readStoredPolicy } from "../../core/policies/stored-policy.ts";
import { compileClientAddress, type FindClientAddress } from "../http/client-address.ts";
import { compileHeadReader, type ReadHead } from "../http/head.ts";
import { compileQueryReader, type ReadQuery } from "../http/query-credential.ts";

/** A policy prepared for evaluating requests. Each request uses one `ActivePolicy` from start to end. */
export interface ActivePolicy {
  /** Unique number of each prepared policy. Per-policy caches refer to this number, so that they do not retain the policy. */
  readonly serial: number;
  readonly record: PolicyRecord;
  readonly policy: CompiledPolicy;
  readonly rules: RuleMatcher;
  readonly readHead: ReadHead;
  readonly readQuery: ReadQuery | undefined;
  readonly findClientAddress: FindClientAddress | undefined;
}

/** A policy that this version of the gate cannot enforce. */
export interface UnsupportedPolicy {
  readonly problem: string;
}

/**
 * Number of requests that shared a counter because their limits have too many identifiers. Counted since the gate started, over all
 * policies.
 */
export const sharedRequests: SharedRequests = { count: 0 };

/** Prepares a projected policy. Returns a problem if this version cannot read a policy that another version wrote. */
export function readPolicy(record: PolicyRecord): ActivePolicy | UnsupportedPolicy {
  const { policy, problem } = readStoredPolicy(record.policy);
  if (policy === undefined) return { problem };
  try {
    return compileActive(record, policy);
  } catch (error) {
    // The api-server that stored the policy may have a later version, whose query syntax this version cannot parse.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

let prepared = 0;

/** Compiles the policy. Throws if a permission query is invalid. */
function compileActive(record: PolicyRecord, policy: CompiledPolicy): ActivePolicy {
  const rules = compileRules(policy, { shared: sharedRequests });
  prepared += 1;
  return {
    serial: prepared,
    record,
    policy,
    rules,
    readHead: compileHeadReader(policy.credentials, rules),
    readQuery: compileQueryReader(policy.credentials),
    findClientAddress: compileClientAddress(policy.clientAddress),
  };
}
