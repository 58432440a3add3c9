import { GATED_BY_LABEL, gatedBy } from "../../pods/gated-by.ts";
import { asksForGate, type PodSummary, portIn } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";
import { choosePolicy, concerns, selectorOf } from "./choose-policy.ts";

/* Determines which pods a policy selects, and which of them it guards. Pure. */

/** Whether a pod could match both selectors: no label is required with two values. */
export function mayShare(a: ManifestObject, b: ManifestObject): boolean {
  const [one, other] = [selectorOf(a), selectorOf(b)];
  if (one === undefined || other === undefined || a.metadata.namespace !== b.metadata.namespace) return false;
  return Object.entries(one).every(([name, value]) => !Object.hasOwn(other, name) || other[name] === value);
}

/** The running pods that a policy selects. */
export interface Selected {
  /** All pods that the policy guards or should guard. */
  readonly own: readonly PodSummary[];
  /** Pods in any state that the webhook marked for the policy's NetworkPolicy. */
  readonly gated: readonly PodSummary[];
  /** All pods that its NetworkPolicy selects. Anyone who may edit a pod can add the label, even without a gate. */
  readonly labelled: readonly PodSummary[];
  /** Number of pods with a gate of this policy. */
  readonly guarded: number;
  /** Names under which their injected gates report, sorted. A manually deployed gate may report under any name. */
  readonly expected: readonly string[];
  /** Sorted names of pods whose gate forwards to a port other than `spec.target.port`: they predate its change. */
  readonly outdated: readonly string[];
  /** Sorted names of pods without a gate. */
  readonly unguarded: readonly string[];
  /** Number of pods that may start without a gate, because neither they nor their Namespace have the label that requires one. */
  readonly unlabelled: number;
  /** Whether the Namespace has the label; `undefined` if unknown. */
  readonly isNamespaceGuarded: boolean | undefined;
  /** Number of pods that an older policy also selects, and therefore guards. */
  readonly contested: number;
  /** One of these older policies. */
  readonly competitor: ManifestObject | undefined;
}

/** Whether a pod has the label that the policy's NetworkPolicy selects. Both are in the same namespace. */
export const isLabelled = ({ metadata }: ManifestObject, { labels }: Pick<PodSummary, "labels">): boolean =>
  labels[GATED_BY_LABEL] === gatedBy(metadata.name);

/** Returns pods in any state into which the webhook injected a gate for the policy. */
export const gatedOf = (policy: ManifestObject, pods: readonly PodSummary[]): readonly PodSummary[] =>
  pods.filter((pod) => pod.gate !== undefined && isLabelled(policy, pod));

/** Selects among the pods of the policy's namespace. `policies` are the policies of that namespace, with or without this one. */
export function selectedBy(
  policy: ManifestObject,
  pods: readonly PodSummary[],
  policies: readonly ManifestObject[],
  isNamespaceGuarded?: boolean,
): Selected {
  const { name, uid } = policy.metadata;
  const older = policies.filter((one) => one.metadata.uid !== uid && oldestOf(policy, [one]) === one);
  const running = pods.filter((pod) => pod.isRunning && concerns(policy, pod));
  // The older policy that guards the pod. A pod that names a younger or missing policy has no gate of this one.
  const competitors = running.map((pod) => choosePolicy(pod, older)?.policy);
  const own = running.filter((_, i) => competitors[i] === undefined);
  const isGuarded = (pod: PodSummary) => pod.gate !== undefined && (pod.policy ?? name) === name;
  const labelled = pods.filter((pod) => isLabelled(policy, pod));
  return {
    own,
    gated: gatedOf(policy, labelled),
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
    competitor: competitors.find((competitor) => competitor !== undefined),
  };
}

/**
 * Returns the sorted names under which the gates report that were injected into running pods that name the policy. Used for policies
 * without a selector.
 */
export const namedBy = ({ metadata: { name } }: ManifestObject, pods: readonly PodSummary[]): readonly string[] =>
  pods
    .filter(({ isRunning, gate, policy }) => isRunning && gate !== undefined && policy === name)
    .map((pod) => `${pod.namespace}/${pod.name}`)
    .sort();

/** Tolerates invalid rules, because they do not affect the port. */
export function targetPortOf({ spec }: ManifestObject): string | number | undefined {
  const { target } = (spec ?? {}) as { readonly target?: { readonly port?: unknown } };
  return typeof target?.port === "string" || typeof target?.port === "number" ? target.port : undefined;
}

function isOutdated({ gate, policy: named }: PodSummary, policy: ManifestObject): boolean {
  const port = targetPortOf(policy);
  if (gate?.guards === undefined || port === undefined) return false;
  const meant = portIn(gate, port);
  // The webhook rejects pods without the named port; a manually deployed gate needs no port names.
  if (meant === undefined) return named !== undefined;
  return meant !== gate.guards;
}
