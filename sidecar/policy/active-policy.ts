import { compileRules, type RuleMatcher } from "../../core/policies/match-rule.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type PolicyRecord, readStoredPolicy } from "../../core/policies/stored-policy.ts";
import { compileClientAddress, type FindClientAddress } from "../http/client-address.ts";
import { compileHeadReader, type ReadHead } from "../http/head.ts";
import { compileQueryReader, type ReadQuery } from "../http/query-credential.ts";

/** A policy prepared for evaluating requests. A request uses the same one from start to end. */
export interface ActivePolicy {
  /** Differs for each prepared policy. Per-policy caches use it so that they do not retain the policy. */
  readonly serial: number;
  readonly record: PolicyRecord;
  readonly policy: CompiledPolicy;
  readonly rules: RuleMatcher;
  readonly readHead: ReadHead;
  readonly readQuery: ReadQuery | undefined;
  readonly findClientAddress: FindClientAddress | undefined;
}

/** Why this version cannot enforce a policy. */
export interface PolicyProblem {
  readonly problem: string;
}

/** Prepares a projected policy. A policy written by another version may not be readable. */
export function readPolicy(record: PolicyRecord): ActivePolicy | PolicyProblem {
  const { policy, problem } = readStoredPolicy(record.policy);
  if (policy === undefined) return { problem };
  try {
    return compileActive(record, policy);
  } catch (error) {
    // A query in the syntax of a later version: the api-server that stored it could parse it.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

let prepared = 0;

/** Throws when a permission query does not parse. */
function compileActive(record: PolicyRecord, policy: CompiledPolicy): ActivePolicy {
  const rules = compileRules(policy);
  prepared += 1;
  return {
    serial: prepared,
    record,
    policy,
    rules,
    readHead: compileHeadReader(policy.credentials),
    readQuery: compileQueryReader(policy.credentials),
    findClientAddress: compileClientAddress(policy.clientAddress),
  };
}
