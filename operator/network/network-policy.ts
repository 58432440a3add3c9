import type { FollowedKind, FollowedObjects } from "../runtime/follow-objects.ts";
import type { KubeObject } from "../runtime/kube-client.ts";

/* The fields of a Kubernetes NetworkPolicy (networking.k8s.io/v1) that the operator reads or writes. Pure. */

export interface NetworkPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Uid of the controlling owner; `undefined` without one. */
  readonly controllerUid: string | undefined;
  /** Whether the NetworkPolicy has no controlling owner and was written for a policy that has since been deleted. */
  readonly isOrphaned: boolean;
  readonly spec: NetworkPolicySpec;
}

export interface NetworkPolicySpec {
  readonly podSelector: LabelSelector;
  readonly policyTypes?: readonly string[];
  readonly ingress?: readonly IngressRule[];
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: ReadonlyArray<{
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }>;
}

export interface IngressRule {
  /** Allowed senders. Default: all. */
  readonly from?: readonly unknown[];
  /** Allowed ports. Default: all. */
  readonly ports?: readonly PolicyPort[];
}

export interface PolicyPort {
  readonly protocol?: string;
  /** Number or container port name. Default: all ports of the protocol. */
  readonly port?: number | string;
  readonly endPort?: number;
}

const PORT_MAX = 65_535;

/** Label of each NetworkPolicy that is written for an ApiKeyPolicy. */
export const MANAGED_LABEL = { "app.kubernetes.io/managed-by": "postern" };

interface Owned {
  readonly ownerReferences?: ReadonlyArray<{ readonly uid: string; readonly controller?: boolean }>;
}

export function toNetworkPolicy({ metadata, spec }: KubeObject): NetworkPolicy {
  const { ownerReferences = [] } = metadata as KubeObject["metadata"] & Owned;
  const controllerUid = ownerReferences.find(({ controller }) => controller === true)?.uid;
  const isManaged = Object.entries(MANAGED_LABEL).every(([name, value]) => metadata.labels?.[name] === value);
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: metadata.uid,
    controllerUid,
    isOrphaned: controllerUid === undefined && isManaged,
    spec: spec as NetworkPolicySpec,
  };
}

/** Removes `managedFields` and annotations, which are most of such an object. */
function withoutWriters({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const {
    managedFields: _,
    annotations: __,
    ...kept
  } = metadata as KubeObject["metadata"] & { managedFields?: unknown };
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata: kept, spec };
}

/** A NetworkPolicy that is being deleted but waits for a finalizer is still enforced. */
export const NETWORK_POLICIES: FollowedKind<NetworkPolicy> = {
  groupPath: "/apis/networking.k8s.io/v1",
  plural: "networkpolicies",
  trim: withoutWriters,
  toSeen: toNetworkPolicy,
};
export type NetworkPolicies = FollowedObjects<NetworkPolicy>;

/** Returns the NetworkPolicies that isolate pods with these labels: only the ports that they list are open. */
export const isolating = (
  policies: readonly NetworkPolicy[],
  labels: Readonly<Record<string, string>>,
): readonly NetworkPolicy[] =>
  policies.filter(
    ({ spec: { podSelector, policyTypes = ["Ingress"] } }) =>
      policyTypes.includes("Ingress") && matches(podSelector, labels),
  );

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

/** Whether a spec that `allowAllExcept` returned still closes a TCP port. It may have been edited: a named port counts as open. */
export const closes = ({ ingress = [] }: NetworkPolicySpec, port: number): boolean =>
  ingress.every(({ ports = [] }) => ports.length > 0 && ports.every((one) => !mayInclude(one, port)));

const mayInclude = ({ protocol = "TCP", port: first, endPort }: PolicyPort, port: number): boolean =>
  protocol === "TCP" && (typeof first !== "number" || (first <= port && port <= (endPort ?? first)));

/**
 * The spec of a NetworkPolicy that keeps everyone from some TCP ports of the selected pods, and leaves all else as it is without
 * one: other TCP ports, other protocols, all senders.
 *
 * A NetworkPolicy can only allow, so all ports around the closed ones are listed, as ranges. A network plugin without `endPort` reads a
 * range as its first port; for its sake the ports that the pods list are listed one by one as well.
 */
export function allowAllExcept(
  podSelector: LabelSelector,
  { closed, listed }: { readonly closed: readonly number[]; readonly listed: readonly number[] },
): NetworkPolicySpec {
  const tcp = (port: number, endPort?: number): PolicyPort => ({
    protocol: "TCP",
    port,
    ...(endPort === undefined || endPort === port ? {} : { endPort }),
  });
  const ports: PolicyPort[] = [...new Set(listed)]
    .filter((port) => !closed.includes(port))
    .sort((a, b) => a - b)
    .map((port) => tcp(port));
  let first = 1;
  for (const port of [...new Set(closed)].sort((a, b) => a - b)) {
    if (first < port) ports.push(tcp(first, port - 1));
    first = port + 1;
  }
  if (first <= PORT_MAX) ports.push(tcp(first, PORT_MAX));
  return {
    podSelector,
    policyTypes: ["Ingress"],
    ingress: [{ ports: [...ports, { protocol: "UDP" }, { protocol: "SCTP" }] }],
  };
}
