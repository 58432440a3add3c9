import { GUARDED_LABEL, type SeenPod } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";

/* Which pods a policy selects, and which of them it guards. Pure. */

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

/** Whether a pod could have the labels of both selectors: no label is asked for with two values. */
export function mayShare(a: ManifestObject, b: ManifestObject): boolean {
  const [one, other] = [selectorOf(a), selectorOf(b)];
  if (one === undefined || other === undefined || a.metadata.namespace !== b.metadata.namespace) return false;
  return Object.entries(one).every(([name, value]) => !Object.hasOwn(other, name) || other[name] === value);
}

/** The running pods that a policy selects. */
export interface Selected {
  /** Those that have its gate. */
  readonly guarded: number;
  /** The names of those that do not, sorted. */
  readonly unguarded: readonly string[];
  /** Those without the label by which a pod is admitted with a gate or not at all. */
  readonly unlabelled: number;
  /** Those that an older policy selects too, and therefore guards. */
  readonly contested: number;
  /** One of these older policies. */
  readonly rival: ManifestObject | undefined;
}

/** `policies` are those of the policy's namespace, itself among them or not. */
export function selectedBy(
  policy: ManifestObject,
  pods: readonly SeenPod[],
  policies: readonly ManifestObject[],
): Selected {
  const running = pods.filter((pod) => pod.isRunning && selects(policy, pod));
  if (running.length === 0) return { guarded: 0, unguarded: [], unlabelled: 0, contested: 0, rival: undefined };
  const others = policies.filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined && metadata.uid !== policy.metadata.uid,
  );
  // A pod whose template names the policy is its own, whatever others select it.
  const ownerOf = (pod: SeenPod) =>
    pod.policy === policy.metadata.name
      ? policy
      : oldestOf(
          policy,
          others.filter((other) => selects(other, pod)),
        );
  const isOwn = (pod: SeenPod) => ownerOf(pod) === policy;
  const own = running.filter(isOwn);
  const [rival] = running.map(ownerOf).filter((owner) => owner !== policy);
  const isGuarded = (pod: SeenPod) => pod.hasGate && (pod.policy ?? policy.metadata.name) === policy.metadata.name;
  return {
    guarded: own.filter(isGuarded).length,
    unguarded: own
      .filter((pod) => !isGuarded(pod))
      .map(({ name }) => name)
      .sort(),
    unlabelled: own.filter(({ labels }) => labels[GUARDED_LABEL] !== "true").length,
    contested: running.length - own.length,
    rival,
  };
}
