import { closes, isolating, type NetworkPolicy } from "../../network/network-policy.ts";
import { selectionOf, targetsOf } from "../../network/service.ts";
import { GATED_BY_LABEL } from "../../pods/gated-by.ts";
import { interceptionOf, type PodSummary, portIn } from "../../pods/pod.ts";
import type { FurtherCondition, Reason } from "../plan.ts";
import {
  desiredNetworkPolicy,
  foreignNetworkPolicy,
  networkActions,
  networkPolicyName,
  othersIsolating,
  ownNetworkPolicy,
} from "./network.ts";
import type { ObservedPolicy } from "./observed.ts";

type Observed = Pick<ObservedPolicy, "object" | "parsed" | "selected" | "network"> &
  Partial<Pick<ObservedPolicy, "services">>;

const NAMES_MAX = 5;

/**
 * Returns whether clients can bypass the gate of a selected pod, according to the pods, the Services and the managed NetworkPolicy. Pods
 * that another NetworkPolicy isolates count neither as open nor as closed, because its effect depends on the network plugin. Pure.
 */
export function bypassable(observed: Observed): FurtherCondition {
  const { object, parsed, selected, network } = observed;
  const is = (status: FurtherCondition["status"], reason: Reason, message: string): FurtherCondition => ({
    ...{ type: "Bypassable", status, reason, message },
  });
  if (network === undefined) {
    return is(
      "True",
      "NotSupported",
      "Outside of a cluster, the app's port is open: traffic that bypasses the gate is not checked.",
    );
  }
  if (selected === undefined) {
    return is(
      "True",
      "SelectorMissing",
      "Without spec.selector, the pods are unknown, so traffic can bypass their gates.",
    );
  }
  if (selected === "unknown") return is("Unknown", "PodsUnavailable", "The pods of spec.selector cannot be listed.");
  if (network === "unknown") {
    return is("Unknown", "NetworkPoliciesUnavailable", "The NetworkPolicies of the namespace cannot be listed.");
  }
  if (selected.unguarded.length > 0) {
    return is("True", "UnguardedPods", `${count(selected.unguarded.length)} of spec.selector no gate of this policy.`);
  }
  const { interception = "Port", networkPolicy } = parsed.spec ?? {};
  if (interception === "None") {
    return is(
      "True",
      "InterceptionDisabled",
      "spec.interception is None: requests to the app's port do not pass the gate, which only a gateway calls. The operator writes no NetworkPolicy, because it would block the gateway.",
    );
  }
  const past = servicesPastGate(observed);
  if (past.length > 0) {
    const message = `${listOf("Service", past)} to the app's port, past the gate: set targetPort to the name of the port, which leads to the gate. These requests are not checked, or fail if the network plugin of the cluster enforces NetworkPolicies.`;
    return { ...is("True", "ServicePastGate", message), note: message };
  }
  const own = ownNetworkPolicy(observed);
  const others = network.filter((one) => one !== own);
  const isolators = new Set<NetworkPolicy>();
  const open = selected.own.filter((pod) => {
    if (pod.gate === undefined || pod.gate.isOnHostNetwork) return true;
    if (pod.gate.redirects) return false;
    const found = isolating(others, pod.labels);
    for (const one of found) isolators.add(one);
    return found.length === 0 && !(own !== undefined && isClosed(pod, own, observed));
  });
  if (open.length === 0 && isolators.size === 0) return closed(observed, is);
  if (open.length === 0) {
    return is(
      "Unknown",
      "ConflictingNetworkPolicy",
      `The ${names([...isolators])} selects pods of this policy and may open the app's port; Postern does not evaluate it. It should admit only the gate's port.`,
    );
  }
  const pods = open.length === 1 ? "one pod" : `${open.length} pods`;
  if (open.every((pod) => isMadeBefore(pod, observed))) {
    return is(
      "True",
      "PodsOutdated",
      `The app's port of ${pods} is open: they were created before a change of spec.target.port or spec.interception. Restart them, so that the webhook injects the gate again.`,
    );
  }
  if (networkPolicy === "None") {
    return is(
      "True",
      "NetworkPolicyDisabled",
      `spec.networkPolicy is None, and the app's port of ${pods} is open: traffic that bypasses the gate is not checked.`,
    );
  }
  const isolated = othersIsolating(observed);
  if (isolated.length > 0) {
    return is(
      "True",
      "ConflictingNetworkPolicy",
      `The app's port of ${pods} is open. The operator writes no NetworkPolicy while the ${names(isolated)} isolates other pods of this policy, because another NetworkPolicy would open the ports that this one closes: change it to select all pods of the policy.`,
    );
  }
  if (foreignNetworkPolicy(observed) !== undefined) {
    return is(
      "True",
      "Conflict",
      `The app's port of ${pods} is open: the NetworkPolicy ${networkPolicyName(object)} does not belong to this policy and is not overwritten.`,
    );
  }
  if (networkActions(observed).length > 0 && open.every(isCoverable)) {
    return is("True", "Progressing", `The app's port of ${pods} is open until the NetworkPolicy is written.`);
  }
  return is(
    "True",
    "PodsNotCovered",
    `The app's port of ${pods} is open: the pods use the network of their node, or have a gate that an older release or a person added without the label ${GATED_BY_LABEL} or a known port, or the port belongs to the gate of another pod. Restart them, so that the webhook injects the gate again.`,
  );
}

type Make = (status: FurtherCondition["status"], reason: Reason, message: string) => FurtherCondition;

/** Returns the condition for the case that no running pod's gate can be bypassed. */
function closed(observed: Observed, is: Make): FurtherCondition {
  const { selected } = observed;
  const found = ownNetworkPolicy(observed);
  if (typeof selected !== "object" || selected.own.length === 0) {
    if (found === undefined || desiredNetworkPolicy(observed) === undefined) {
      return is("Unknown", "NoPods", "No pods of spec.selector are running.");
    }
  } else if (selected.own.every(({ gate }) => gate?.redirects === true)) {
    return is("False", "Redirected", "All pods redirect packets for the app's port to the gate.");
  }
  return is(
    "False",
    "Succeeded",
    `The NetworkPolicy ${found?.name} blocks the app's port, if the network plugin of the cluster enforces NetworkPolicies. The nodes of the pods can always reach it.${headlessNote(observed)}`,
  );
}

/** Returns whether the managed NetworkPolicy closes the app's port of a pod. A port that is unknown counts as open. */
function isClosed({ gate, labels }: PodSummary, own: NetworkPolicy, { parsed: { spec } }: Observed): boolean {
  const target = gate && spec && portIn(gate, spec.target.port);
  const ports = [gate?.guards ?? target, target ?? gate?.guards];
  return isolating([own], labels).length > 0 && ports.every((one) => one !== undefined && closes(own.spec, one));
}

/**
 * Returns whether the gate of a pod guards another port than the policy requires now, or does not intercept although it now should. This
 * happens if the policy was changed after the pod was created.
 */
function isMadeBefore(pod: PodSummary, { parsed: { spec } }: Observed): boolean {
  if (pod.gate === undefined || spec === undefined) return false;
  const target = portIn(pod.gate, spec.target.port);
  const isOfPort = pod.gate.guards === undefined || target === undefined || target === pod.gate.guards;
  return !isOfPort || (interceptionOf(pod) === "None" && spec.interception !== "None");
}

/**
 * Returns the names of Services that bypass the gate by sending requests directly to the app's port of a running pod. Pods with `Redirect`
 * do not count, because the kernel redirects such requests to the gate.
 */
function servicesPastGate({ selected, services }: Observed): readonly string[] {
  if (typeof services !== "object" || typeof selected !== "object") return [];
  const pods = selected.own
    .filter((pod) => interceptionOf(pod) === "Port")
    .map((pod) => ({ pod, targets: pod.gate?.guards === undefined ? [] : targetsOf(pod, pod.gate.guards) }));
  return services
    .filter((service) => {
      const [selects, sent] = [selectionOf(service), new Set(service.targets)];
      return pods.some(({ pod, targets }) => targets.some((target) => sent.has(target)) && selects(pod));
    })
    .map(({ name }) => name)
    .sort();
}

function headlessNote({ selected, services }: Observed): string {
  if (typeof services !== "object" || typeof selected !== "object") return "";
  const pods = selected.own.filter((pod) => interceptionOf(pod) === "Port");
  const headless = services.filter((one) => one.isHeadless && pods.some(selectionOf(one)));
  if (headless.length === 0) return "";
  const shown = headless.map(({ name }) => name).sort();
  return ` Clients of the headless Service ${shownOf(shown)} choose the port themselves: they must use the gate's port.`;
}

const listOf = (kind: string, names: readonly string[]): string =>
  names.length === 1 ? `The ${kind} ${names[0]} sends requests` : `The ${kind}s ${shownOf(names)} send requests`;

function shownOf(names: readonly string[]): string {
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
}

/** Returns whether the managed NetworkPolicy could close the pod's guarded port. */
const isCoverable = ({ gate, labels }: PodSummary): boolean =>
  gate?.isOnHostNetwork === false && gate.guards !== undefined && labels[GATED_BY_LABEL] !== undefined;

const count = (pods: number): string => (pods === 1 ? "One running pod" : `${pods} running pods`);

/** Returns the names of NetworkPolicies. Readers of the policy's status may see them, because all are in the policy's own namespace. */
const names = (policies: ReadonlyArray<{ readonly name: string }>): string =>
  `NetworkPolicy ${shownOf(policies.map(({ name }) => name).sort())}`;
