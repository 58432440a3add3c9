import type { KubeObject } from "../runtime/kube-client.ts";

/* The fields of a Kubernetes NetworkPolicy (networking.k8s.io/v1) that decide which senders reach the ports of a pod. */

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
