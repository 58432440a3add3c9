import { isDeepStrictEqual } from "node:util";
import { allowAllExcept, isolating, type NetworkPolicy, type NetworkPolicySpec } from "../../network/network-policy.ts";
import { cutName, GATED_BY_LABEL, gatedBy, INTERCEPTION_LABEL } from "../../pods/gated-by.ts";
import { interceptionOf, type PodSummary } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { takenInCluster } from "../claims.ts";
import type { Verdict } from "../plan.ts";
import { selectorOf } from "./choose-policy.ts";
import type { ObservedPolicy } from "./observed.ts";

/*
 * Determines the NetworkPolicy of a policy. Pure.
 *
 * With `interception: Port`, the app still listens on its own port, on which a client could bypass the gate, so the NetworkPolicy closes
 * this port. The NetworkPolicy selects pods by the label that the webhook adds with the gate. The labels of spec.selector would also
 * select pods that run without a gate when the manifest is applied; and if two policies selected one pod, each would open the port that
 * the other one closes. Only pods with `Port` are selected, even after the policy changes its interception: with `Redirect`, senders
 * still address the app's port and the kernel redirects every packet to the gate; with `None`, a gateway sends requests to this port.
 *
 * No NetworkPolicy is written if another one already isolates the pods: NetworkPolicies are additive, and this one, which allows all
 * other traffic, would open ports that the other one keeps closed.
 */

export type NetworkAction =
  | {
      readonly type: "writeNetworkPolicy";
      readonly name: string;
      readonly spec: NetworkPolicySpec;
      /** Existing NetworkPolicy; `undefined` if a new one must be created. */
      readonly found: NetworkPolicy | undefined;
    }
  | { readonly type: "deleteNetworkPolicy"; readonly found: NetworkPolicy }
  | { readonly type: "orphanNetworkPolicy"; readonly found: NetworkPolicy; readonly pods: readonly PodSummary[] };

const NAME_CHARS_MAX = 253;

export const networkPolicyName = ({ metadata: { name } }: Pick<ManifestObject, "metadata">): string =>
  cutName(`postern-${name}`, NAME_CHARS_MAX);

type Networked = Pick<ObservedPolicy, "object" | "parsed" | "selected" | "formerPods" | "network">;

/**
 * Returns the object's own NetworkPolicy, found by the uid of its owner; `undefined` if there is none or the NetworkPolicies are not listed
 * yet.
 */
export const ownNetworkPolicy = ({ object, network }: Pick<ObservedPolicy, "object" | "network">) =>
  typeof network === "object"
    ? network.find(
        ({ name, controllerUid }) => name === networkPolicyName(object) && controllerUid === object.metadata.uid,
      )
    : undefined;

/**
 * Returns a NetworkPolicy that has the reserved name but belongs to something else. If it remains from a deleted object with this name and
 * is owned by that object's pods, it is not returned, because the new object adopts it.
 */
export const foreignNetworkPolicy = ({ object, network }: Pick<ObservedPolicy, "object" | "network">) =>
  typeof network === "object"
    ? network.find(
        ({ name, controllerUid, isOrphaned }) =>
          name === networkPolicyName(object) && controllerUid !== object.metadata.uid && !isOrphaned,
      )
    : undefined;

/** Returns the NetworkPolicies of the namespace that isolate pods of the policy, except one with the reserved name. */
export function othersIsolating({ object, selected, network }: Networked): readonly NetworkPolicy[] {
  if (typeof network !== "object" || typeof selected !== "object") return [];
  const others = network.filter(({ name }) => name !== networkPolicyName(object));
  // While no pod exists, the labels that all pods of the policy will have are checked.
  const expected = { ...selectorOf(object), [GATED_BY_LABEL]: gatedBy(object.metadata.name) } as PodSummary["labels"];
  const pods = selected.gated.length > 0 ? selected.labelled : [...selected.labelled, { labels: expected }];
  const found = new Set(pods.flatMap(({ labels }) => isolating(others, labels)));
  return others.filter((one) => found.has(one));
}

/** Returns the desired spec of the NetworkPolicy; `undefined` if there should be no NetworkPolicy. */
export function desiredNetworkPolicy(observed: Networked): NetworkPolicySpec | undefined {
  const { object, parsed, selected } = observed;
  const { spec } = parsed;
  if (spec?.networkPolicy !== "Managed" || typeof selected !== "object") return undefined;
  const isPort = spec.interception === "Port";
  const gated = selected.gated.filter(
    (pod) => interceptionOf(pod, spec.interception) === "Port" && (isPort || !pod.hasEnded),
  );
  if (!isPort && gated.length === 0) return undefined;
  if (othersIsolating(observed).length > 0) return undefined;
  const { port } = spec.target;
  // A named port can have a different number in each pod, so the number is taken from the configuration of each pod's gate.
  const known = isPort && typeof port === "number" ? port : undefined;
  const guarded = [...gated.map(({ gate }) => gate?.guards), known];
  // A port of the app in one pod stays open if it is the gate's own port in another pod.
  const ways = new Set(gated.flatMap(({ gate }) => gate?.own ?? []));
  const closed = guarded.filter((one) => one !== undefined).filter((one) => !ways.has(one));
  if (closed.length === 0) return undefined;
  const listed = gated.flatMap(({ gate }) => gate?.ports.map(({ number }) => number) ?? []);
  const podSelector = {
    matchLabels: { [GATED_BY_LABEL]: gatedBy(object.metadata.name) },
    // A pod without this label has the interception mode `Port`.
    matchExpressions: [{ key: INTERCEPTION_LABEL, operator: "NotIn", values: ["Redirect", "None"] }],
  };
  return allowAllExcept(podSelector, { closed, listed });
}

/** Returns the actions that change the NetworkPolicy to its desired state. */
export function networkActions(observed: Networked): readonly NetworkAction[] {
  const { object, parsed, network } = observed;
  // Without the spec or the pods, the desired state is unknown, so the existing NetworkPolicy remains.
  if (parsed.spec === undefined || typeof network !== "object" || gatedPods(observed) === "unknown") return [];
  const desired = desiredNetworkPolicy(observed);
  const found = ownNetworkPolicy(observed);
  if (desired === undefined && found !== undefined) {
    const isLeft = observed.selected === undefined && parsed.spec.networkPolicy === "Managed";
    return [isLeft ? networkCleanUp(observed, found) : { type: "deleteNetworkPolicy", found }];
  }
  if (desired === undefined) return [];
  if (foreignNetworkPolicy(observed) !== undefined || isDeepStrictEqual(found?.spec, desired)) return [];
  const name = networkPolicyName(object);
  const orphaned = network.find((one) => one.name === name && one.isOrphaned);
  return [{ type: "writeNetworkPolicy", name, spec: desired, found: found ?? orphaned }];
}

/** Returns the pods into which the webhook injected a gate for the policy, with or without a selector. */
export const gatedPods = ({ selected, formerPods }: Pick<Networked, "selected" | "formerPods">) =>
  typeof selected === "object" ? selected.gated : (selected ?? formerPods);

/**
 * Returns the action for the NetworkPolicy when its policy or the policy's selector is deleted. The pods keep their gates, which reject
 * every request without a policy, so the app's port must stay closed. Therefore the running pods become the owners of the NetworkPolicy,
 * and Kubernetes deletes it with the last of them. `found` is the object's own NetworkPolicy.
 */
export function networkCleanUp(
  observed: Pick<Networked, "selected" | "formerPods">,
  found: NetworkPolicy,
): NetworkAction {
  const known = gatedPods(observed);
  const gated = typeof known === "object" ? known : [];
  const pods = gated.filter((pod) => !pod.hasEnded && interceptionOf(pod) === "Port");
  return pods.length === 0 ? { type: "deleteNetworkPolicy", found } : { type: "orphanNetworkPolicy", found, pods };
}

/** Returns a verdict if the policy is active but its NetworkPolicy cannot be written, so clients can bypass the gate. */
export function networkConflict(observed: Networked): Verdict | undefined {
  const foreign = foreignNetworkPolicy(observed);
  if (foreign === undefined || desiredNetworkPolicy(observed) === undefined) return undefined;
  return takenInCluster(
    `The existing NetworkPolicy ${foreign.name} does not belong to this policy and is not overwritten. Rename or delete it, or set spec.networkPolicy to None.`,
  );
}
