import { upstreamPortInPod } from "../../core/gates/upstream-port.ts";
import type { FollowedKind, FollowedObjects } from "../runtime/follow-objects.ts";
import type { KubeObject } from "../runtime/kube-client.ts";
import { INTERCEPTION_LABEL } from "./gated-by.ts";

/** Name of the gate's container. A pod has a gate if a container or init container has this name. */
export const GATE_CONTAINER = "postern-gate";
/** Name of the init container that redirects packets for the app's port to the gate. */
export const REDIRECT_CONTAINER = "postern-redirect";
/** Label of a pod or of its Namespace; pods with this label are admitted only with a gate. */
export const GUARDED_LABEL = "postern.dev/guarded";

/**
 * Returns whether a label requires a gate. Any value except "false" does, because a pod with a misspelled value such as "True" must not
 * start without a gate.
 */
export const asksForGate = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[GUARDED_LABEL] !== undefined && labels[GUARDED_LABEL] !== "false";
/** Annotation that names the ApiKeyPolicy, which need not exist yet. The webhook reads it from a pod template and writes it to the pod. */
export const POLICY_ANNOTATION = "postern.dev/policy";

/** Fields of a pod that the operator caches. */
export interface PodSummary {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Whether the pod may serve requests: it runs and is not being deleted. A pod on an unreachable node counts, because it may still be
   * running.
   */
  readonly isRunning: boolean;
  /** Whether all containers have terminated. Until then, a pod that is being deleted may still serve requests. */
  readonly hasEnded: boolean;
  /** Summary of the gate; `undefined` for a pod without a gate. */
  readonly gate: GateSummary | undefined;
  /** Policy for which the webhook injected the gate; `undefined` if the gate was added in another way. */
  readonly policy: string | undefined;
}

export type UpstreamProtocol = "http1" | "h2c";

/** Fields of a gate that the operator caches. */
export interface GateSummary {
  /** Guarded port of the app; `undefined` if the gate's environment does not contain the port. */
  readonly guards: number | undefined;
  /** Protocol in which the gate forwards requests, according to its environment. */
  readonly protocol: UpstreamProtocol;
  /** Whether packets for the app's port are redirected to the gate. */
  readonly redirects: boolean;
  /** Whether the pod uses the network of its node. */
  readonly isOnHostNetwork: boolean;
  /** Ports of the gate itself, for requests and probes. */
  readonly own: readonly number[];
  /** TCP ports that the pod's containers list, including the gate. */
  readonly ports: ReadonlyArray<{ readonly name?: string | undefined; readonly number: number }>;
}

interface Port {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
}

interface Container {
  readonly name: string;
  readonly env?: ReadonlyArray<{ readonly name: string; readonly value?: string }>;
  readonly ports?: readonly Port[];
}

interface PodSpec {
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly hostNetwork?: boolean;
}

const UPSTREAM = "POSTERN_UPSTREAM";
const UPSTREAM_PROTOCOL = "POSTERN_UPSTREAM_PROTOCOL";

/** Returns a pod with only the fields that `toPod` reads, because the operator caches all pods, the largest collection of a cluster. */
export function trimPod({ metadata, spec, status }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels, annotations } = metadata;
  const policy = annotations?.[POLICY_ANNOTATION];
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
    spec: trimSpec((spec ?? {}) as PodSpec),
    status: { phase },
  };
}

/**
 * Removes the containers of a pod without a gate. Keeps only the app's port and protocol from a gate's environment, because the URL of the
 * app may contain a password.
 */
function trimSpec({ containers = [], initContainers = [], hostNetwork }: PodSpec): PodSpec {
  const all = [...containers, ...initContainers];
  const gate = all.find(({ name }) => name === GATE_CONTAINER);
  if (gate === undefined) return {};
  const guards = guardedBy(gate);
  const tcpPorts = (of: readonly Container[]) =>
    of
      .flatMap(({ ports = [] }) => ports)
      .filter(({ protocol = "TCP" }) => protocol === "TCP")
      .map(({ name, containerPort }) => ({ ...(name === undefined ? {} : { name }), containerPort }));
  const env = [
    ...(guards === undefined ? [] : [{ name: UPSTREAM, value: `http://127.0.0.1:${guards}` }]),
    ...(protocolOf(gate) === "http1" ? [] : [{ name: UPSTREAM_PROTOCOL, value: protocolOf(gate) }]),
  ];
  const redirect = all.filter(({ name }) => name === REDIRECT_CONTAINER).map(({ name }) => ({ name }));
  return {
    containers: [{ name: "", ports: tcpPorts(all.filter((one) => one !== gate)) }],
    initContainers: [{ name: GATE_CONTAINER, env, ports: tcpPorts([gate]) }, ...redirect],
    ...(hostNetwork === true ? { hostNetwork } : {}),
  };
}

/**
 * Returns the port of the app behind a gate; `undefined` if the environment does not contain the app's address as text, or if the app is
 * outside the pod.
 */
const guardedBy = ({ env = [] }: Container): number | undefined =>
  upstreamPortInPod(env.find(({ name }) => name === UPSTREAM)?.value);

const protocolOf = ({ env = [] }: Container): UpstreamProtocol =>
  env.find(({ name }) => name === UPSTREAM_PROTOCOL)?.value === "h2c" ? "h2c" : "http1";

export function toPod(object: KubeObject): PodSummary {
  const { name, namespace = "", uid, labels = {}, annotations, deletionTimestamp } = object.metadata;
  const { phase } = (object.status ?? {}) as { readonly phase?: string };
  return {
    namespace,
    name,
    uid,
    labels,
    isRunning: deletionTimestamp === undefined && (phase === "Running" || phase === "Unknown"),
    hasEnded: phase === "Succeeded" || phase === "Failed",
    gate: toGate((object.spec ?? {}) as PodSpec),
    policy: annotations?.[POLICY_ANNOTATION],
  };
}

/** Summarizes the gate of a trimmed pod spec. */
function toGate({ containers = [], initContainers = [], hostNetwork = false }: PodSpec): GateSummary | undefined {
  const gate = initContainers.find(({ name }) => name === GATE_CONTAINER);
  if (gate === undefined) return undefined;
  return {
    guards: guardedBy(gate),
    protocol: protocolOf(gate),
    redirects: initContainers.some(({ name }) => name === REDIRECT_CONTAINER),
    isOnHostNetwork: hostNetwork,
    own: (gate.ports ?? []).map(({ containerPort }) => containerPort),
    ports: [...containers, gate].flatMap(({ ports = [] }) =>
      ports.map(({ name, containerPort: number }) => ({ name, number })),
    ),
  };
}

export const PODS: FollowedKind<PodSummary> = { groupPath: "/api/v1", plural: "pods", trim: trimPod, toSeen: toPod };
export type Pods = FollowedObjects<PodSummary>;

export type Interception = "Port" | "Redirect" | "None";

/**
 * Returns the interception mode with which the pod was created. A pod without the label got its gate in another way, so the policy's
 * current mode, `now`, applies.
 */
export function interceptionOf(
  { gate, labels }: Pick<PodSummary, "gate" | "labels">,
  now: Interception = "Port",
): Interception {
  if (gate?.redirects === true) return "Redirect";
  const made = labels[INTERCEPTION_LABEL];
  return made === "None" || (made === undefined && now === "None") ? "None" : "Port";
}

/** Returns the number of a named port in a pod; `undefined` if the pod has no port of this name. */
export function portIn({ guards, own, ports }: GateSummary, port: string | number): number | undefined {
  if (typeof port === "number") return port;
  const number = ports.find(({ name }) => name === port)?.number;
  // If the gate has taken over the name of the app's port, the name now refers to the gate's port.
  return number !== undefined && own.includes(number) ? guards : number;
}
