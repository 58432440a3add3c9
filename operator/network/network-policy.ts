import type { FollowedKind, FollowedObjects } from "../runtime/follow-objects.ts";
import type { KubeObject } from "../runtime/kube-client.ts";

/* Fields of a Kubernetes NetworkPolicy (networking.k8s.io/v1) that the operator reads or writes, and pure functions for these fields. */

export interface NetworkPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Uid of the controlling owner; `undefined` if there is none. */
  readonly controllerUid: string | undefined;
  /** Whether the NetworkPolicy belonged to a policy that has been deleted, so it has no controlling owner. */
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
  /** Number or name of the container port. Default: all ports of the protocol. */
  readonly port?: number | string;
  readonly endPort?: number;
}

const PORT_MAX = 65_535;

/** Label of each NetworkPolicy that the operator writes for an ApiKeyPolicy. */
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

/** Returns the object without `managedFields` and annotations, which take up most of it. */
function withoutWriters({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const {
    managedFields: _,
    annotations: __,
    ...kept
  } = metadata as KubeObject["metadata"] & { managedFields?: unknown };
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata: kept, spec };
}

/** A NetworkPolicy that is being deleted is still enforced while it waits for a finalizer. */
export const NETWORK_POLICIES: FollowedKind<NetworkPolicy> = {
  groupPath: "/apis/networking.k8s.io/v1",
  plural: "networkpolicies",
  trim: withoutWriters,
  toSeen: toNetworkPolicy,
};
export type NetworkPolicies = FollowedObjects<NetworkPolicy>;

/** Returns the NetworkPolicies that isolate pods with these labels, so that only the ports that these NetworkPolicies list are open. */
export const isolating = (
  policies: readonly NetworkPolicy[],
  labels: Readonly<Record<string, string>>,
): readonly NetworkPolicy[] =>
  policies.filter(
    ({ spec: { podSelector, policyTypes = ["Ingress"] } }) =>
      policyTypes.includes("Ingress") && matches(podSelector, labels),
  );

/** Returns whether a Kubernetes label selector matches the labels. An empty selector matches all labels. */
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

/**
 * Returns whether a spec still closes a TCP port. `allowAllExcept` created the spec, which may have been edited since. A port name counts
 * as open.
 */
export const closes = ({ ingress = [] }: NetworkPolicySpec, port: number): boolean =>
  ingress.every(({ ports = [] }) => ports.length > 0 && ports.every((one) => !mayInclude(one, port)));

const mayInclude = ({ protocol = "TCP", port: first, endPort }: PolicyPort, port: number): boolean =>
  protocol === "TCP" && (typeof first !== "number" || (first <= port && port <= (endPort ?? first)));

/**
 * Returns the spec of a NetworkPolicy that closes some TCP ports of the selected pods. All other TCP ports and all other protocols stay
 * open to all senders, as without a NetworkPolicy.
 *
 * A NetworkPolicy can only allow traffic, so the spec allows all other ports, as ranges. A network plugin that does not support `endPort`
 * treats a range as its first port, so the spec also lists the ports in `listed` individually.
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
