import type { LimitCharge } from "../../../core/charges.ts";
import { parseQuery, type Query } from "../../../core/permissions/query.ts";
import { checkTarget } from "../../../core/policies/check-path.ts";
import type { CompiledRule } from "../../../core/policies/match-rule.ts";
import { compileRules } from "../../../core/policies/match-rule.ts";
import { planRule } from "../../../core/policies/plan-rule.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { KeyRecord } from "../../../core/records.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { type CallCharges, type ChargePlan, planCall } from "../../../core/verification/plan-charges.ts";
import type { Lookup, Projection } from "../../../edge/projection/contract.ts";
import type { WithoutStore } from "../../../edge/verification/count.ts";
import type { Verification } from "../../../edge/verification/verify.ts";
import { WITH_CREDITS } from "../ratelimits/counting.ts";

/** What is verified: a call of keys.verifyKey, or a request at a gate, whose policy has found this rule. */
export type Asked =
  | ({ readonly kind: "call"; readonly permissions: string | undefined } & CallCharges)
  | { readonly kind: "gate"; readonly policy: CompiledPolicy; readonly rule: CompiledRule };

/** The rule for a request, or why the path itself is refused. */
export function findRule(
  policy: CompiledPolicy,
  { method, path }: { readonly method: string; readonly path: string },
): CompiledRule | { readonly refused: string } {
  const rules = compileRules(policy);
  const checked = checkTarget(path, { allow: policy.allowPaths, pathDecides: rules.pathDecides });
  return "refused" in checked ? checked : rules.match(method, checked.path);
}

/** A verification for edge/verification that remembers what it was asked for. Its caller sees every key of the workspace. */
export class ExplainedVerification implements Verification {
  readonly clientIp: string | undefined;
  found: Lookup<KeyView> | undefined;
  readonly #of: { readonly workspaceId: string; readonly hash: string };
  readonly #projection: Pick<Projection, "findKey">;
  readonly #asked: Asked;

  constructor(
    of: { readonly workspaceId: string; readonly hash: string; readonly clientIp: string | undefined },
    projection: Pick<Projection, "findKey">,
    asked: Asked,
  ) {
    this.#of = of;
    this.clientIp = of.clientIp;
    this.#projection = projection;
    this.#asked = asked;
  }

  async find(): Promise<Lookup<KeyView>> {
    this.found = await this.#projection.findKey(this.#of.workspaceId, this.#of.hash);
    return this.found;
  }

  /** A gate knows no key of another API. */
  maySee({ workspaceId, apiId }: KeyRecord): boolean {
    if (workspaceId !== this.#of.workspaceId) return false;
    return this.#asked.kind === "call" || apiId === this.#asked.policy.apiId;
  }

  /** Throws QuerySyntaxError. */
  readQuery(): Query | undefined {
    if (this.#asked.kind === "gate") return this.#asked.rule.query;
    const { permissions } = this.#asked;
    return permissions === undefined ? undefined : parseQuery(permissions);
  }

  /** Throws `NoSuchLimit`. */
  plan(view: KeyView): ChargePlan {
    // Audit mode counts nothing; what Enforce would do is the question.
    if (this.#asked.kind === "gate") return planRule(view, this.#asked.rule, { audit: false });
    const plan = planCall(view, this.#asked);
    if ("limits" in plan) return plan;
    throw new NoSuchLimit("unknown" in plan ? plan.unknown : plan.tooShort);
  }

  withoutStore(): WithoutStore {
    return WITH_CREDITS;
  }
}

/** A limit was named that neither the key nor its identity has, or its window is too short. */
export class NoSuchLimit extends Error {
  override name = "NoSuchLimit";
  readonly limit: string;

  constructor(limit: string) {
    super(`the limit ${limit} cannot be charged`);
    this.limit = limit;
  }
}

/** All slugs that a query names, each once, in order. */
export function slugsIn(query: Query | undefined): string[] {
  if (query === undefined) return [];
  if (query.op === "permission") return [query.slug];
  return [...new Set(query.operands.flatMap(slugsIn))];
}

/** Where a limit comes from: an identity's, a key's own, one that the request defines, a rule's, or a namespace's. */
export function sourceOf(
  charge: LimitCharge,
  { view, plan }: { readonly view: KeyView; readonly plan: ChargePlan },
): "key" | "identity" | "request" | "namespace" {
  if (charge.scope.kind === "namespace") return "namespace";
  const selected = plan.selected.find(({ name }) => name === charge.scope.value);
  if (selected === undefined || selected.id === "") return "request";
  return selected.identifier === view.identity?.id ? "identity" : "key";
}
