import type { KubeObject } from "../runtime/kube-client.ts";

/* A NetworkPolicy of Kubernetes (networking.k8s.io/v1), as far as it says who may reach the ports of a pod. */

export interface NetworkPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The uid of the object that controls it; undefined for one without such an owner. */
  readonly controllerUid: string | undefined;
  /** Whether it has no such owner, and was written for a policy that was deleted since. */
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
  /** Senders; anyone when left out. */
  readonly from?: readonly unknown[];
  /** All ports when left out. */
  readonly ports?: readonly PolicyPort[];
}

export interface PolicyPort {
  readonly protocol?: string;
  /** By number, or by the name that a container of the pod gave it; all ports of the protocol when left out. */
  readonly port?: number | string;
  readonly endPort?: number;
}

/** On each that is written for an ApiKeyPolicy. */
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
