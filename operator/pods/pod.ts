import type { KubeObject } from "../runtime/kube-client.ts";

/** The container of the gate in a pod. A pod has a gate when one of its containers or init containers has this name. */
export const GATE_CONTAINER = "postern-gate";
/** On a pod or its namespace: admitted with a gate, or not at all. */
export const GUARDED_LABEL = "postern.dev/guarded";
/** The name of the ApiKeyPolicy, which need not exist yet. Read from a pod template, and written on the pod by the webhook. */
export const POLICY_ANNOTATION = "postern.dev/policy";

/** What is kept of a pod. */
export interface SeenPod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether it may serve requests: it runs, and is not being deleted. A pod whose node is lost may run on. */
  readonly isRunning: boolean;
  readonly hasGate: boolean;
  /** The policy that its gate was injected for; undefined for a gate that was put there by other means. */
  readonly policy: string | undefined;
}

interface PodSpec {
  readonly containers?: ReadonlyArray<{ readonly name: string }>;
  readonly initContainers?: ReadonlyArray<{ readonly name: string }>;
}

/** A pod with only what `toPod` reads: pods are the largest collection of a cluster, and all of them are kept in memory. */
export function trimPod({ metadata, spec, status }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels, annotations } = metadata;
  const policy = annotations?.[POLICY_ANNOTATION];
  const { containers = [], initContainers = [] } = (spec ?? {}) as PodSpec;
  const hasGate = [...containers, ...initContainers].some((container) => container.name === GATE_CONTAINER);
  const { phase } = (status ?? {}) as { readonly phase?: string };
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(namespace === undefined ? {} : { namespace }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(labels === undefined ? {} : { labels }),
      ...(policy === undefined ? {} : { annotations: { [POLICY_ANNOTATION]: policy } }),
    },
    spec: hasGate ? { initContainers: [{ name: GATE_CONTAINER }] } : {},
    status: { phase },
  };
}

export function toPod(object: KubeObject): SeenPod {
  const { name, namespace = "", labels = {}, annotations, deletionTimestamp } = object.metadata;
  const { initContainers = [] } = (object.spec ?? {}) as PodSpec;
  const { phase } = (object.status ?? {}) as { readonly phase?: string };
  return {
    namespace,
    name,
    labels,
    isRunning: deletionTimestamp === undefined && (phase === "Running" || phase === "Unknown"),
    hasGate: initContainers.length > 0,
    policy: annotations?.[POLICY_ANNOTATION],
  };
}
