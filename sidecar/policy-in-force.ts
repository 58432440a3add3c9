import type { TargetOptions } from "../core/policies/check-path.ts";
import { type CompiledRule, compileRules, type RuleMatcher } from "../core/policies/match-rule.ts";
import type { CompiledPolicy, PolicyRecord } from "../core/policies/policy.ts";
import type { KeyView } from "../core/verification/key-view.ts";
import { compileClientAddress, type FindClientAddress } from "./client-address.ts";
import { compileHeadReader, type ReadHead } from "./head.ts";
import { compileQueryReader, type ReadQuery } from "./query-credential.ts";
import type { Plan } from "./verify.ts";

/** A policy with everything that requests need prepared. A request uses one from its beginning to its end. */
export interface PolicyInForce {
  readonly record: PolicyRecord;
  readonly policy: CompiledPolicy;
  readonly rules: RuleMatcher;
  readonly targetOptions: TargetOptions;
  readonly readHead: ReadHead;
  readonly readQuery: ReadQuery | undefined;
  readonly findClientAddress: FindClientAddress | undefined;
  /** What keys are charged by rule; goes with the policy. */
  readonly plans: WeakMap<KeyView, Map<CompiledRule, Plan>>;
}

/** Throws when a permission query does not parse: the api-server never stores such a policy. */
export function compileInForce(record: PolicyRecord): PolicyInForce {
  const { policy } = record;
  const rules = compileRules(policy);
  return {
    record,
    policy,
    rules,
    targetOptions: { allow: policy.allowPaths, pathDecides: rules.pathDecides },
    readHead: compileHeadReader(policy.credentials),
    readQuery: compileQueryReader(policy.credentials),
    findClientAddress: compileClientAddress(policy.clientAddress),
    plans: new WeakMap(),
  };
}
