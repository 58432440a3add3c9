import type { PodSummary } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";

/*
 * Chooses the ApiKeyPolicy of a pod, for the webhook (injection) and for the status (counts). Pure.
 *
 * The annotation `postern.dev/policy` names a policy, which may not exist yet. Without the annotation, the policy whose selector matches
 * the pod applies; if several policies match, the oldest one applies, as in every conflict between claims.
 */

/** Fields of a pod that determine its policy. `policy` is the value of the pod's annotation. */
export type PodToGuard = Pick<PodSummary, "namespace" | "labels" | "policy">;

export interface Choice {
  /** Policy that applies to the pod; `undefined` if the pod names a policy that does not exist. */
  readonly policy: ManifestObject | undefined;
  readonly name: string;
  /** Younger policies that also select the pod. */
  readonly overridden: readonly ManifestObject[];
}

/**
 * Chooses the policy of a pod among the policies of its namespace. Returns `undefined` if the pod names no policy and no policy selects it.
 */
export function choosePolicy(pod: PodToGuard, policies: readonly ManifestObject[]): Choice | undefined {
  const { namespace, policy: named } = pod;
  if (named !== undefined) {
    const policy = policies.find(({ metadata }) => metadata.namespace === namespace && metadata.name === named);
    return { policy, name: named, overridden: [] };
  }
  const [first, ...others] = policies.filter(
    (policy) => policy.metadata.deletionTimestamp === undefined && selects(policy, pod),
  );
  if (first === undefined) return undefined;
  const policy = oldestOf(first, others);
  return { policy, name: policy.metadata.name, overridden: [first, ...others].filter((other) => other !== policy) };
}

/** Returns the labels of `spec.selector`, even if the rest of the spec is invalid; `undefined` if the policy selects no pods. */
export function selectorOf({ spec }: ManifestObject): Readonly<Record<string, unknown>> | undefined {
  const { selector } = (spec ?? {}) as { readonly selector?: { readonly matchLabels?: unknown } };
  const { matchLabels } = selector ?? {};
  if (typeof matchLabels !== "object" || matchLabels === null) return undefined;
  // An empty selector would select every pod; the CRD rejects it.
  return Object.keys(matchLabels).length === 0 ? undefined : (matchLabels as Readonly<Record<string, unknown>>);
}

/** Returns whether a policy selects a pod: both are in the same namespace, and the pod has all labels of the selector. */
export function selects(policy: ManifestObject, pod: Pick<PodSummary, "namespace" | "labels">): boolean {
  const selector = selectorOf(policy);
  return (
    selector !== undefined &&
    policy.metadata.namespace === pod.namespace &&
    Object.entries(selector).every(([name, value]) => pod.labels[name] === value)
  );
}

/** Returns whether a policy may apply to a pod, because the policy selects the pod or the pod names the policy. */
export const concerns = (policy: ManifestObject, pod: PodToGuard): boolean =>
  selects(policy, pod) || (pod.policy === policy.metadata.name && pod.namespace === policy.metadata.namespace);
