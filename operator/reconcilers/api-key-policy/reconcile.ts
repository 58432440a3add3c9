import { namespacesOf } from "../../../core/manifests/compile-policy.ts";
import type { ObjectKey } from "../../runtime/object-key.ts";
import type { WorkResult } from "../../runtime/queue.ts";
import { keyOf, type ManifestChange, type ManifestObject } from "../../source/contract.ts";
import type { Context } from "../context.ts";
import { nameIn } from "../ratelimit-namespace/gather.ts";
import { type KindSteps, reconcileObject } from "../reconcile-object.ts";
import { apply, describe } from "./apply.ts";
import { apiIn, gather, isSameClaim, type ObservedPolicy } from "./gather.ts";
import { type PolicyAction, planPolicy } from "./plan.ts";

const steps: KindSteps<ObservedPolicy, PolicyAction> = {
  kind: "ApiKeyPolicy",
  gather,
  plan: planPolicy,
  apply,
  describe,
};

export const reconcilePolicy = (key: ObjectKey, ctx: Context): Promise<WorkResult> => reconcileObject(steps, key, ctx);

/** Policies that limit in a namespace that changed, that may use the API of a maker that changed, or that claim its name. */
export function policiesConcernedBy(change: ManifestChange, { source }: Pick<Context, "source">): ObjectKey[] {
  const policies = source.list("ApiKeyPolicy");
  if (change.kind === "RatelimitNamespace") {
    const names = new Set([nameIn(change.before?.spec), nameIn(change.after?.spec)]);
    return policies.filter((policy) => namespaceNamesOf(policy).some((name) => names.has(name))).map(keyOf);
  }
  if (change.kind !== "ApiKeyPolicy") return [];
  const changed = [change.before, change.after].filter((object) => object !== undefined);
  const isGrant = text(grantsOf(change.before)) !== text(grantsOf(change.after));
  return policies
    .filter((policy) => changed.some((object) => isSameClaim(object, policy)) || (isGrant && usesForeignApi(policy)))
    .map(keyOf);
}

/** Which object made the API that a policy names by its id only the store knows, so all such policies are looked at. */
const usesForeignApi = (policy: ManifestObject): boolean => apiIn(policy).id !== undefined;

const grantsOf = (maker: ManifestObject | undefined): unknown =>
  (maker?.spec as { allowedNamespaces?: unknown } | undefined)?.allowedNamespaces;
const text = (value: unknown): string => JSON.stringify(value ?? null);

/** Also of a spec that does not parse: too many hints do no harm. */
function namespaceNamesOf({ spec }: ManifestObject): string[] {
  const { rules } = (spec ?? {}) as { rules?: unknown };
  if (!Array.isArray(rules)) return [];
  return namespacesOf({ rules: rules.filter((rule) => Array.isArray(rule?.ratelimits)) });
}
