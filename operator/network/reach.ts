import type { LabelSelector, NetworkPolicy, PolicyPort } from "./network-policy.ts";

/*
 * Whether NetworkPolicies let anyone at all reach a TCP port of a pod. They only add up: a pod that none selects is open, and one that
 * some select is open as far as one of them says so. Pure. Whether anything enforces them depends on the cluster's network plugin.
 */

export interface PodPorts {
  readonly labels: Readonly<Record<string, string>>;
  /** The TCP ports that its containers list. */
  readonly ports: ReadonlyArray<{ readonly name?: string | undefined; readonly number: number }>;
}

/** The policies that close the pods with these labels to what they do not let in. */
export const isolating = (policies: readonly NetworkPolicy[], labels: PodPorts["labels"]): readonly NetworkPolicy[] =>
  policies.filter(
    ({ spec: { podSelector, policyTypes = ["Ingress"] } }) =>
      policyTypes.includes("Ingress") && matches(podSelector, labels),
  );

/** The policies that let someone in at a TCP port of a pod, of those that `isolating` returns for it. */
export const admitting = (
  policies: readonly NetworkPolicy[],
  { ports: listed }: Pick<PodPorts, "ports">,
  port: number,
): readonly NetworkPolicy[] => {
  // Once for all of them: a namespace can have thousands of these, each with thousands of ports.
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

/** Whether a label selector of Kubernetes matches. An empty one matches everything. */
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
