import type { SeenPod } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";

/*
 * Which ApiKeyPolicy a pod gets: the one rule by which the webhook injects a gate and the status counts it. Pure.
 *
 * The annotation `postern.dev/policy` names one, which need not exist yet. Otherwise it is the one whose selector matches, and of
 * several the oldest, as for everything that two manifests claim.
 */

/** A pod as far as the choice depends on it. `policy` is what its annotation names. */
export type PodToGuard = Pick<SeenPod, "namespace" | "labels" | "policy">;

export interface Choice {
  /** undefined for a policy that the pod names, and that does not exist. */
  readonly policy: ManifestObject | undefined;
  readonly name: string;
  /** Others that select the pod too, and are younger. */
  readonly outdone: readonly ManifestObject[];
}

/** Returns undefined for a pod that names no policy and that none selects. Policies of other namespaces do not matter. */
export function choosePolicy(pod: PodToGuard, policies: readonly ManifestObject[]): Choice | undefined {
  const { namespace, policy: named } = pod;
  if (named !== undefined) {
    const policy = policies.find(({ metadata }) => metadata.namespace === namespace && metadata.name === named);
    return { policy, name: named, outdone: [] };
  }
  const [first, ...others] = policies.filter(
    (policy) => policy.metadata.deletionTimestamp === undefined && selects(policy, pod),
  );
  if (first === undefined) return undefined;
  const policy = oldestOf(first, others);
  return { policy, name: policy.metadata.name, outdone: [first, ...others].filter((other) => other !== policy) };
}

/** The labels of `spec.selector`, also of a spec that is otherwise invalid; undefined for a policy that selects no pods. */
export function selectorOf({ spec }: ManifestObject): Readonly<Record<string, unknown>> | undefined {
  const { selector } = (spec ?? {}) as { readonly selector?: { readonly matchLabels?: unknown } };
  const { matchLabels } = selector ?? {};
  if (typeof matchLabels !== "object" || matchLabels === null) return undefined;
  // An empty selector would select every pod. The CRD refuses it.
  return Object.keys(matchLabels).length === 0 ? undefined : (matchLabels as Readonly<Record<string, unknown>>);
}

/** Whether a policy selects a pod: both are in one namespace, and the pod has all labels of the selector. */
export function selects(policy: ManifestObject, pod: Pick<SeenPod, "namespace" | "labels">): boolean {
  const selector = selectorOf(policy);
  return (
    selector !== undefined &&
    policy.metadata.namespace === pod.namespace &&
    Object.entries(selector).every(([name, value]) => pod.labels[name] === value)
  );
}

/** Whether a policy may be the one of a pod: it selects the pod, or the pod names it. */
export const concerns = (policy: ManifestObject, pod: PodToGuard): boolean =>
  selects(policy, pod) || (pod.policy === policy.metadata.name && pod.namespace === policy.metadata.namespace);
