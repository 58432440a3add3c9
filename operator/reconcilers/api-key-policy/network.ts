import { isDeepStrictEqual } from "node:util";
import { allBut } from "../../network/all-but.ts";
import type { NetworkPolicy, NetworkPolicySpec } from "../../network/network-policy.ts";
import { isolating } from "../../network/reach.ts";
import { cutName, GATED_BY_LABEL, gatedBy, INTERCEPTION_LABEL } from "../../pods/gated-by.ts";
import { interceptionOf, type SeenPod } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { takenInCluster } from "../claims.ts";
import type { Verdict } from "../plan.ts";
import { selectorOf } from "./choose-policy.ts";
import type { ObservedPolicy } from "./observed.ts";

/*
 * Which NetworkPolicy a policy has. Pure.
 *
 * With `interception: Port` the app still listens on its own port, and who knows the number gets past the gate: so the port is closed.
 * The NetworkPolicy selects by the label that the webhook writes with the gate. By the labels of spec.selector it would cut off the pods
 * that run without a gate when the manifest is applied; and where two policies select one pod, each would open what the other closes.
 *
 * None is written when another one isolates the pods already: NetworkPolicies only add up, and ours, which lets everyone in everywhere
 * else, would open what that one keeps closed. With `Redirect` the kernel leads every packet to the gate, and the senders still name
 * the app's port. With `None` a gateway sends its requests to it. So it selects the pods with `Port` alone, also after the policy has got
 * another interception: it goes with the last of those pods, because nothing else closes their port.
 */

export type NetworkAction =
  | {
      readonly type: "writeNetworkPolicy";
      readonly name: string;
      readonly spec: NetworkPolicySpec;
      /** The one that is there; a new one is made when it is undefined. */
      readonly found: NetworkPolicy | undefined;
    }
  | { readonly type: "deleteNetworkPolicy"; readonly found: NetworkPolicy }
  | { readonly type: "orphanNetworkPolicy"; readonly found: NetworkPolicy; readonly pods: readonly SeenPod[] };

const NAME_CHARS_MAX = 253;

export const networkPolicyName = ({ metadata: { name } }: Pick<ManifestObject, "metadata">): string =>
  cutName(`postern-${name}`, NAME_CHARS_MAX);

type Networked = Pick<ObservedPolicy, "object" | "parsed" | "selected" | "network">;

/** The object's own NetworkPolicy, by the uid of its owner; undefined when there is none, or when that is not known. */
export const ownNetworkPolicy = ({ object, network }: Pick<ObservedPolicy, "object" | "network">) =>
  typeof network === "object"
    ? network.find(
        ({ name, controllerUid }) => name === networkPolicyName(object) && controllerUid === object.metadata.uid,
      )
    : undefined;

/** One that has the name and is not the object's. One that a former object of this name left to its pods is taken over. */
export const foreignNetworkPolicy = ({ object, network }: Pick<ObservedPolicy, "object" | "network">) =>
  typeof network === "object"
    ? network.find(
        ({ name, controllerUid, isOrphaned }) =>
          name === networkPolicyName(object) && controllerUid !== object.metadata.uid && !isOrphaned,
      )
    : undefined;

/** Those of the namespace that isolate pods of the policy, without the one that has the name of its own. */
export function othersIsolating({ object, selected, network }: Networked): readonly NetworkPolicy[] {
  if (typeof network !== "object" || typeof selected !== "object") return [];
  const others = network.filter(({ name }) => name !== networkPolicyName(object));
  // Before there is a pod: one with the labels that are known of all of them.
  const expected = { ...selectorOf(object), [GATED_BY_LABEL]: gatedBy(object.metadata.name) } as SeenPod["labels"];
  const pods = selected.gated.length > 0 ? selected.labelled : [...selected.labelled, { labels: expected }];
  const found = new Set(pods.flatMap(({ labels }) => isolating(others, labels)));
  return others.filter((one) => found.has(one));
}

/** The spec of the NetworkPolicy that there should be; undefined when there should be none. */
export function wantedNetworkPolicy(observed: Networked): NetworkPolicySpec | undefined {
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
  // A name is a number only in a pod; the gate of each says which.
  const known = isPort && typeof port === "number" ? port : undefined;
  const guarded = [...gated.map(({ gate }) => gate?.guards), known];
  // The way in to one pod must not be closed, although it is the way around in another.
  const ways = new Set(gated.flatMap(({ gate }) => gate?.own ?? []));
  const closed = guarded.filter((one) => one !== undefined).filter((one) => !ways.has(one));
  if (closed.length === 0) return undefined;
  const listed = gated.flatMap(({ gate }) => gate?.ports.map(({ number }) => number) ?? []);
  const podSelector = {
    matchLabels: { [GATED_BY_LABEL]: gatedBy(object.metadata.name) },
    // A pod without the label is one of `Port`.
    matchExpressions: [{ key: INTERCEPTION_LABEL, operator: "NotIn", values: ["Redirect", "None"] }],
  };
  return allBut(podSelector, { closed, listed });
}

/** What makes the NetworkPolicy as it should be. */
export function networkActions(observed: Networked): readonly NetworkAction[] {
  const { object, parsed, selected, network } = observed;
  // Without the spec or the pods it is not known what there should be, and what there is stays.
  if (parsed.spec === undefined || typeof network !== "object" || selected === "unknown") return [];
  const wanted = wantedNetworkPolicy(observed);
  const found = ownNetworkPolicy(observed);
  if (wanted === undefined) return found === undefined ? [] : [{ type: "deleteNetworkPolicy", found }];
  if (foreignNetworkPolicy(observed) !== undefined || isDeepStrictEqual(found?.spec, wanted)) return [];
  const name = networkPolicyName(object);
  const orphaned = network.find((one) => one.name === name && one.isOrphaned);
  return [{ type: "writeNetworkPolicy", name, spec: wanted, found: found ?? orphaned }];
}

/**
 * What becomes of the NetworkPolicy when its policy is deleted. Gates go on without one and refuse every request, so it must not open the
 * app's port beside them: it stays for the pods that run, and goes with the last of them. `found` is the object's own.
 */
export function networkCleanUp({ selected }: Pick<Networked, "selected">, found: NetworkPolicy): NetworkAction {
  const gated = typeof selected === "object" ? selected.gated : [];
  const pods = gated.filter((pod) => !pod.hasEnded && interceptionOf(pod) === "Port");
  return pods.length === 0 ? { type: "deleteNetworkPolicy", found } : { type: "orphanNetworkPolicy", found, pods };
}

/** The policy itself is in force all the same: it is the way around it that stays open. */
export function networkConflict(observed: Networked): Verdict | undefined {
  const foreign = foreignNetworkPolicy(observed);
  if (foreign === undefined || wantedNetworkPolicy(observed) === undefined) return undefined;
  return takenInCluster(
    `There is a NetworkPolicy ${foreign.name} that does not belong to this policy, and it is not overwritten. Rename or delete it, or set spec.networkPolicy to None.`,
  );
}
