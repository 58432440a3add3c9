import { GATED_BY_LABEL, gatedBy } from "../../pods/gated-by.ts";
import { asksForGate, type PodSummary, portIn } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { oldestOf } from "../claims.ts";
import { choosePolicy, concerns, selectorOf } from "./choose-policy.ts";

/* Determines which pods a policy selects, and which of them it guards. Pure. */

/** Returns whether a pod could match both selectors. This is not the case if they require different values of one label. */
export function mayShare(a: ManifestObject, b: ManifestObject): boolean {
  const [one, other] = [selectorOf(a), selectorOf(b)];
  if (one === undefined || other === undefined || a.metadata.namespace !== b.metadata.namespace) return false;
  return Object.entries(one).every(([name, value]) => !Object.hasOwn(other, name) || other[name] === value);
}

/** Pods of a policy. Unless stated otherwise, they are running. */
export interface Selected {
  /** Pods that the policy guards or should guard. */
  readonly own: readonly PodSummary[];
  /** Pods in any state with the label that the webhook sets for the policy's NetworkPolicy. */
  readonly gated: readonly PodSummary[];
  /**
   * Pods that the policy's NetworkPolicy selects. They may include pods without a gate, because anyone who may edit a pod can add the
   * label.
   */
  readonly labelled: readonly PodSummary[];
  /** Number of the policy's pods that have its gate. */
  readonly guarded: number;
  /** Names under which injected gates report, sorted. A manually deployed gate may report under any name. */
  readonly expected: readonly string[];
  /**
   * Sorted names of pods that were created before a change of `spec.target`. Their gates forward to another port or with another protocol.
   */
  readonly outdated: readonly string[];
  /** Sorted names of pods without a gate. */
  readonly unguarded: readonly string[];
  /** Number of pods that can start without a gate, because neither they nor their Namespace have the label that requires one. */
  readonly unlabelled: number;
  /** Whether the Namespace has the label that requires a gate; `undefined` if unknown. */
  readonly isNamespaceGuarded: boolean | undefined;
  /** Number of pods that an older policy also selects and therefore guards. */
  readonly contested: number;
  /** One of the older policies that guard contested pods. */
  readonly competitor: ManifestObject | undefined;
}

/** Returns whether a pod has the label by which the policy's NetworkPolicy selects pods. Both must be in the same namespace. */
export const isLabelled = ({ metadata }: ManifestObject, { labels }: Pick<PodSummary, "labels">): boolean =>
  labels[GATED_BY_LABEL] === gatedBy(metadata.name);

/** Returns the pods into which the webhook injected a gate for the policy, whatever their state. */
export const gatedOf = (policy: ManifestObject, pods: readonly PodSummary[]): readonly PodSummary[] =>
  pods.filter((pod) => pod.gate !== undefined && isLabelled(policy, pod));

/**
 * Determines which pods the policy selects. `pods` and `policies` are those of the policy's namespace; `policies` may include `policy`
 * itself.
 */
export function selectedBy(
  policy: ManifestObject,
  pods: readonly PodSummary[],
  policies: readonly ManifestObject[],
  isNamespaceGuarded?: boolean,
): Selected {
  const { name, uid } = policy.metadata;
  const older = policies.filter((one) => one.metadata.uid !== uid && oldestOf(policy, [one]) === one);
  const running = pods.filter((pod) => pod.isRunning && concerns(policy, pod));
  // An older policy that guards a pod, if any. A pod that names a younger or missing policy has no gate of this policy.
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
 * Returns the sorted names of the injected gates in running pods whose annotation names the policy. Used for policies without a selector.
 */
export const namedBy = ({ metadata: { name } }: ManifestObject, pods: readonly PodSummary[]): readonly string[] =>
  pods
    .filter(({ isRunning, gate, policy }) => isRunning && gate !== undefined && policy === name)
    .map((pod) => `${pod.namespace}/${pod.name}`)
    .sort();

interface Target {
  readonly port?: unknown;
  readonly protocol?: unknown;
}

const targetOf = ({ spec }: ManifestObject): Target =>
  ((spec ?? {}) as { readonly target?: Target | undefined }).target ?? {};

/** Returns the port of `spec.target`, even if the rules of the policy are invalid. */
export function targetPortOf(policy: ManifestObject): string | number | undefined {
  const { port } = targetOf(policy);
  return typeof port === "string" || typeof port === "number" ? port : undefined;
}

function isOutdated({ gate, policy: named }: PodSummary, policy: ManifestObject): boolean {
  const port = targetPortOf(policy);
  if (gate?.guards === undefined || port === undefined) return false;
  // A manually deployed gate may get its protocol from an argument instead of the environment, and needs no port names.
  const { protocol = "http1" } = targetOf(policy);
  if (named !== undefined && protocol !== gate.protocol) return true;
  const meant = portIn(gate, port);
  // The webhook rejects pods without the named port.
  if (meant === undefined) return named !== undefined;
  return meant !== gate.guards;
}
