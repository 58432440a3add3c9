import { GATED_BY_LABEL, gatedBy } from "../../pods/gated-by.ts";
import { asksForGate, portIn, type SeenPod } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";
import { choosePolicy, concerns, selectorOf } from "./choose-policy.ts";

/* Which pods a policy selects, and which of them it guards. Pure. */

/** Whether a pod could have the labels of both selectors: no label is asked for with two values. */
export function mayShare(a: ManifestObject, b: ManifestObject): boolean {
  const [one, other] = [selectorOf(a), selectorOf(b)];
  if (one === undefined || other === undefined || a.metadata.namespace !== b.metadata.namespace) return false;
  return Object.entries(one).every(([name, value]) => !Object.hasOwn(other, name) || other[name] === value);
}

/** The running pods that a policy selects. */
export interface Selected {
  /** All that it guards or should guard. */
  readonly own: readonly SeenPod[];
  /** Pods in any state that the webhook made for it, so that a NetworkPolicy finds them. */
  readonly gated: readonly SeenPod[];
  /** All pods that its NetworkPolicy selects: anyone who may edit a pod can give it the label, without a gate. */
  readonly labelled: readonly SeenPod[];
  /** Those that have its gate. */
  readonly guarded: number;
  /** Of these the names by which gates of the webhook report, sorted; a gate by hand may report by any name. */
  readonly expected: readonly string[];
  /** Those whose gate forwards to another port than `spec.target.port`: they were made before it was changed. Their names, sorted. */
  readonly outdated: readonly string[];
  /** The names of those that do not, sorted. */
  readonly unguarded: readonly string[];
  /** Those that may come without a gate: neither they nor their Namespace have the label that asks for one. */
  readonly unlabelled: number;
  /** Whether the Namespace has it; undefined when that is not known. */
  readonly isNamespaceGuarded: boolean | undefined;
  /** Those that an older policy selects too, and therefore guards. */
  readonly contested: number;
  /** One of these older policies. */
  readonly rival: ManifestObject | undefined;
}

/** Whether a pod has the label by which the policy's NetworkPolicy selects. Both are of one namespace. */
export const isLabelled = ({ metadata }: ManifestObject, { labels }: Pick<SeenPod, "labels">): boolean =>
  labels[GATED_BY_LABEL] === gatedBy(metadata.name);

/** Of the pods of the policy's namespace. `policies` are those of that namespace, itself among them or not. */
export function selectedBy(
  policy: ManifestObject,
  pods: readonly SeenPod[],
  policies: readonly ManifestObject[],
  isNamespaceGuarded?: boolean,
): Selected {
  const { name, uid } = policy.metadata;
  const older = policies.filter((one) => one.metadata.uid !== uid && oldestOf(policy, [one]) === one);
  const running = pods.filter((pod) => pod.isRunning && concerns(policy, pod));
  // The older policy whose pod it is. A pod that names a younger one, or one that does not exist, has no gate of this one.
  const rivals = running.map((pod) => choosePolicy(pod, older)?.policy);
  const own = running.filter((_, i) => rivals[i] === undefined);
  const isGuarded = (pod: SeenPod) => pod.gate !== undefined && (pod.policy ?? name) === name;
  const labelled = pods.filter((pod) => isLabelled(policy, pod));
  return {
    own,
    gated: labelled.filter(({ gate }) => gate !== undefined),
    labelled,
    guarded: own.filter(isGuarded).length,
    expected: own
      .filter((pod) => isGuarded(pod) && pod.policy !== undefined)
      .map((pod) => `${pod.namespace}/${pod.name}`)
      .sort(),
    outdated: own
      .filter((pod) => isGuarded(pod) && isOutdated(pod, policy))
      .map((pod) => pod.name)
      .sort(),
    unguarded: own
      .filter((pod) => !isGuarded(pod))
      .map((pod) => pod.name)
      .sort(),
    unlabelled: own.filter(({ labels }) => isNamespaceGuarded !== true && !asksForGate(labels)).length,
    isNamespaceGuarded,
    contested: running.length - own.length,
    rival: rivals.find((rival) => rival !== undefined),
  };
}

/**
 * The names by which the gates report that were injected for a policy into running pods, sorted. For a policy without a selector, whose
 * pods are those that name it.
 */
export const namedBy = ({ metadata: { name } }: ManifestObject, pods: readonly SeenPod[]): readonly string[] =>
  pods
    .filter(({ isRunning, gate, policy }) => isRunning && gate !== undefined && policy === name)
    .map((pod) => `${pod.namespace}/${pod.name}`)
    .sort();

/** Read tolerantly: a fault in a rule does not change which port is meant. */
export function targetPortOf({ spec }: ManifestObject): string | number | undefined {
  const { target } = (spec ?? {}) as { readonly target?: { readonly port?: unknown } };
  return typeof target?.port === "string" || typeof target?.port === "number" ? target.port : undefined;
}

function isOutdated({ gate, policy: named }: SeenPod, policy: ManifestObject): boolean {
  const port = targetPortOf(policy);
  if (gate?.guards === undefined || port === undefined) return false;
  const meant = portIn(gate, port);
  // A name that the pod does not have: the webhook would have refused the pod. A gate by hand needs no names.
  if (meant === undefined) return named !== undefined;
  return meant !== gate.guards;
}
