import { compileRules, type RuleMatcher } from "../../core/policies/match-rule.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type PolicyRecord, readStoredPolicy } from "../../core/policies/stored-policy.ts";
import { compileClientAddress, type FindClientAddress } from "../http/client-address.ts";
import { compileHeadReader, type ReadHead } from "../http/head.ts";
import { compileQueryReader, type ReadQuery } from "../http/query-credential.ts";

/** A policy with everything prepared for requests. A request uses the same one from beginning to end. */
export interface PolicyInForce {
  /** Another one for each policy that was prepared: what is kept for a policy need not keep the policy. */
  readonly serial: number;
  readonly record: PolicyRecord;
  readonly policy: CompiledPolicy;
  readonly rules: RuleMatcher;
  readonly readHead: ReadHead;
  readonly readQuery: ReadQuery | undefined;
  readonly findClientAddress: FindClientAddress | undefined;
}

/** Why this release cannot enforce a policy. */
export interface PolicyProblem {
  readonly problem: string;
}

/** Prepares a projected policy. One that another release wrote may not be readable. */
export function readPolicy(record: PolicyRecord): PolicyInForce | PolicyProblem {
  const { policy, problem } = readStoredPolicy(record.policy);
  if (policy === undefined) return { problem };
  try {
    return compileInForce(record, policy);
  } catch (error) {
    // A query in the syntax of a later release: the api-server that stored it could parse it.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

let prepared = 0;

/** Throws when a permission query does not parse. */
function compileInForce(record: PolicyRecord, policy: CompiledPolicy): PolicyInForce {
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
