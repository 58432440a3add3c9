import type { Query } from "../../core/permissions/query.ts";
import type { RequestValues } from "../../core/policies/counted-by.ts";
import { checkFreshness } from "../../core/policies/freshness.ts";
import type { CompiledRule } from "../../core/policies/match-rule.ts";
import { planRule } from "../../core/policies/plan-rule.ts";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import type { KeyRecord } from "../../core/records.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { ChargePlan } from "../../core/verification/plan-charges.ts";
import type { Lookup, MaybePromise, Projection } from "../projection/contract.ts";
import type { WithoutStore } from "./count.ts";
import type { Verification } from "./verify.ts";

/** Data that a gate needs to verify the key of a request and to count it. */
export interface RuleRequest extends RequestValues {
  readonly active: { readonly policy: CompiledPolicy };
  readonly rule: CompiledRule;
  /** Base64 SHA-256 of the key. */
  readonly hash: string;
  readonly clientIp: string | undefined;
}

interface RuleParts {
  readonly projection: Pick<Projection, "findKey" | "stalenessMs">;
  readonly workspaceId: string;
}

const UNKNOWN: Lookup<KeyView> = { status: "unusable", reason: "The gate cannot look the API key up now." };

/**
 * Verification of a key that a policy rule requires. The key must belong to the policy's API. The rule defines the required permissions and
 * the charges.
 */
export class RuleVerification<Question extends RuleRequest = RuleRequest> implements Verification {
  readonly clientIp: string | undefined;
  protected readonly question: Question;
  readonly #workspaceId: string;
  readonly #projection: RuleParts["projection"];

  constructor({ workspaceId, projection }: RuleParts, question: Question) {
    this.#workspaceId = workspaceId;
    this.clientIp = question.clientIp;
    this.#projection = projection;
    this.question = question;
  }

  find(): MaybePromise<Lookup<KeyView>> {
    const found = this.#projection.findKey(this.#workspaceId, this.question.hash);
    return found instanceof Promise ? found.then((late) => this.#checkNegativeEntry(late)) : found;
  }

  maySee({ workspaceId, apiId }: KeyRecord): boolean {
    return workspaceId === this.#workspaceId && apiId === this.question.active.policy.apiId;
  }

  readQuery(): Query | undefined {
    return this.question.rule.query;
  }

  plan(view: KeyView): ChargePlan {
    const { active, rule } = this.question;
    const { workspaceId } = view.key;
    return planRule(view, rule, { workspaceId, request: this.question, audit: active.policy.mode === "Audit" });
  }

  withoutStore(): WithoutStore {
    return this.question.active.policy;
  }

  /** Uses a negative cache entry only while the gate's data is fresh, because the key may have been created after the entry. */
  #checkNegativeEntry(lookup: Lookup<KeyView>): Lookup<KeyView> {
    if (lookup.status === "found") return lookup;
    if (lookup.status === "unusable") return UNKNOWN;
    const { onStale } = this.question.active.policy;
    return checkFreshness(onStale, this.#projection.stalenessMs()) === "Fresh" ? lookup : UNKNOWN;
  }
}
