import { admitting, isolating } from "../../network/reach.ts";
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
 * Whether clients can reach the app of a selected pod past its gate, according to all NetworkPolicies of the namespace, including those of
 * other owners. Pure.
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
      "Only in a cluster is the app's port closed: traffic that does not pass the sidecar is not checked.",
    );
  }
  if (selected === undefined) {
    return is(
      "True",
      "SelectorMissing",
      "Without spec.selector the pods are not known, and no way around their sidecars is closed.",
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
      "spec.interception is None: requests to the app's port do not pass the gate, which only a gateway asks. No NetworkPolicy is written, because it would keep out the gateway.",
    );
  }
  const past = servicesPastGate(observed);
  if (past.length > 0) {
    const message = `${listOf("Service", past)} past the gate, to the app's port: set its targetPort to the name of the port, which is the gate's. These requests are not checked, or fail where the cluster's network plugin enforces NetworkPolicies.`;
    return { ...is("True", "ServicePastGate", message), note: message };
  }
  const open = selected.own.filter((pod) => isOpen(pod, observed));
  if (open.length === 0) return closed(observed, is);

  const pods = open.length === 1 ? "one pod" : `${open.length} pods`;
  const others = othersThatAdmit(open, observed);
  if (others.length > 0) {
    return is(
      "True",
      "ConflictingNetworkPolicy",
      `The app's port of ${pods} is open by ${names(others)}: let it name the gate's port instead.`,
    );
  }
  if (open.every((pod) => isMadeBefore(pod, observed))) {
    return is(
      "True",
      "PodsOutdated",
      `The app's port of ${pods} is open: they were made before spec.target.port or spec.interception was changed. Restart them, so that the webhook makes them again.`,
    );
  }
  if (networkPolicy === "None") {
    return is(
      "True",
      "NetworkPolicyDisabled",
      `spec.networkPolicy is None, and the app's port of ${pods} is open: traffic that does not pass the gate is not checked.`,
    );
  }
  const isolated = othersIsolating(observed);
  if (isolated.length > 0) {
    return is(
      "True",
      "ConflictingNetworkPolicy",
      `The app's port of ${pods} is open. Postern writes no NetworkPolicy while ${names(isolated)} isolates other pods of this policy, because it would open what that one closes: let that one select all of them.`,
    );
  }
  if (foreignNetworkPolicy(observed) !== undefined) {
    return is(
      "True",
      "Conflict",
      `The app's port of ${pods} is open: the NetworkPolicy ${networkPolicyName(object)} is not this policy's, and is not overwritten.`,
    );
  }
  if (networkActions(observed).length > 0 && open.every(isCoverable)) {
    return is("True", "Progressing", `The app's port of ${pods} is open until the NetworkPolicy is written.`);
  }
  return is(
    "True",
    "PodsNotCovered",
    `The app's port of ${pods} is open: they have the network of their node, or a gate from before this release or by hand, without the label ${GATED_BY_LABEL} or a known port, or it is the port of another pod's gate. Restart them, so that the webhook makes them again.`,
  );
}

type Make = (status: FurtherCondition["status"], reason: Reason, message: string) => FurtherCondition;

/** No running pod can be bypassed. */
function closed(observed: Observed, is: Make): FurtherCondition {
  const { selected } = observed;
  const own = typeof selected === "object" ? selected.own : [];
  const found = ownNetworkPolicy(observed);
  const depends = "if the cluster's network plugin enforces NetworkPolicies. The pods' own nodes always reach it.";
  if (found !== undefined && desiredNetworkPolicy(observed) !== undefined) {
    const closes = `The NetworkPolicy ${found.name} lets no sender reach the app's port, ${depends}`;
    return is("False", "Succeeded", `${closes}${headlessNote(observed)}`);
  }
  if (own.length === 0) return is("Unknown", "NoPods", "No pod of spec.selector runs.");
  if (own.every(({ gate }) => gate?.redirects === true)) {
    return is("False", "Redirected", "In every pod the packets to the app's port are redirected to the gate.");
  }
  return is(
    "False",
    "Succeeded",
    `The NetworkPolicies of the namespace let no sender reach the app's port, ${depends}`,
  );
}

/** Whether clients outside the pod can reach its app past the gate. An unknown port counts as open. */
function isOpen({ gate, labels }: PodSummary, observed: Observed): boolean {
  if (gate === undefined || gate.isOnHostNetwork) return true;
  if (gate.redirects) return false;
  const port = guardedPort(gate, observed);
  if (port === undefined) return true;
  const found = isolating(policiesOf(observed), labels);
  const target = observed.parsed.spec && portIn(gate, observed.parsed.spec.target.port);
  return found.length === 0 || [port, target ?? port].some((one) => admitting(found, gate, one).length > 0);
}

/** Whether a pod predates a change of the policy: its gate guards another port or uses another interception mode. */
function isMadeBefore(pod: PodSummary, { parsed: { spec } }: Observed): boolean {
  if (pod.gate === undefined || spec === undefined) return false;
  const target = portIn(pod.gate, spec.target.port);
  const isOfPort = pod.gate.guards === undefined || target === undefined || target === pod.gate.guards;
  return !isOfPort || (interceptionOf(pod) === "None" && spec.interception !== "None");
}

/**
 * Returns the names of Services that send requests to the app's port of a running pod. Pods with `Redirect` are exempt, because the kernel
 * redirects these requests to the gate.
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
  return ` Clients of the headless Service ${shownOf(shown)} choose the port themselves: let them use the gate's.`;
}

const listOf = (kind: string, names: readonly string[]): string =>
  names.length === 1 ? `The ${kind} ${names[0]} sends requests` : `The ${kind}s ${shownOf(names)} send requests`;

function shownOf(names: readonly string[]): string {
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
}

function guardedPort({ guards }: NonNullable<PodSummary["gate"]>, { parsed }: Observed): number | undefined {
  const port = parsed.spec?.target.port;
  return guards ?? (typeof port === "number" ? port : undefined);
}

const policiesOf = ({ network }: Observed) => (typeof network === "object" ? network : []);

/** Returns the names of foreign NetworkPolicies that admit traffic to the app's port of one of these pods. */
function othersThatAdmit(open: readonly PodSummary[], observed: Observed) {
  const own = ownNetworkPolicy(observed);
  const found = open.flatMap(({ gate, labels }) => {
    const port = gate && guardedPort(gate, observed);
    if (gate === undefined || gate.isOnHostNetwork || port === undefined) return [];
    return admitting(isolating(policiesOf(observed), labels), gate, port).filter((one) => one !== own);
  });
  return [...new Set(found)];
}

/** Whether Postern's own NetworkPolicy can close the pod's port. */
const isCoverable = ({ gate, labels }: PodSummary): boolean =>
  gate?.isOnHostNetwork === false && gate.guards !== undefined && labels[GATED_BY_LABEL] !== undefined;

const count = (pods: number): string => (pods === 1 ? "One running pod" : `${pods} running pods`);

/** All of them are in the policy's own namespace, so readers of its status may see their names. */
const names = (policies: ReadonlyArray<{ readonly name: string }>): string =>
  `the NetworkPolicy ${shownOf(policies.map(({ name }) => name).sort())}`;
