import type { LabelSelector, NetworkPolicy, PolicyPort } from "./network-policy.ts";

/*
 * Evaluates whether NetworkPolicies allow any sender to reach a TCP port of a pod. Policies are additive: a pod that no policy selects is
 * open; a selected pod is open on the ports that any of its policies allows. Pure. Enforcement depends on the cluster's network plugin.
 */

export interface PodPorts {
  readonly labels: Readonly<Record<string, string>>;
  /** TCP ports that the pod's containers list. */
  readonly ports: ReadonlyArray<{ readonly name?: string | undefined; readonly number: number }>;
}

/** Returns the policies that isolate pods with these labels. */
export const isolating = (policies: readonly NetworkPolicy[], labels: PodPorts["labels"]): readonly NetworkPolicy[] =>
  policies.filter(
    ({ spec: { podSelector, policyTypes = ["Ingress"] } }) =>
      policyTypes.includes("Ingress") && matches(podSelector, labels),
  );

/** Returns the policies that allow traffic to a TCP port of a pod, among those that `isolating` returned for the pod. */
export const admitting = (
  policies: readonly NetworkPolicy[],
  { ports: listed }: Pick<PodPorts, "ports">,
  port: number,
): readonly NetworkPolicy[] => {
  // Computed once for all policies: a namespace can have thousands of them, each with thousands of ports.
  const names = new Set(listed.filter(({ number }) => number === port).map(({ name }) => name));
  return policies.filter(({ spec: { ingress = [] } }) =>
    ingress.some(({ ports = [] }) => ports.length === 0 || ports.some((one) => includes(one, names, port))),
  );
};

function includes(
  { protocol = "TCP", port: first, endPort = typeof first === "number" ? first : undefined }: PolicyPort,
  names: ReadonlySet<string | undefined>,
  port: number,
): boolean {
  if (protocol !== "TCP") return false;
  if (first === undefined) return true;
  if (typeof first === "number") return first <= port && port <= (endPort ?? first);
  return names.has(first);
}

/** Whether a Kubernetes label selector matches. An empty selector matches everything. */
export function matches(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      const isIn = value !== undefined && values.includes(value);
      switch (operator) {
        case "In":
          return isIn;
        case "NotIn":
          return !isIn;
        case "Exists":
          return value !== undefined;
        case "DoesNotExist":
          return value === undefined;
        default:
          return false;
      }
    })
  );
}
