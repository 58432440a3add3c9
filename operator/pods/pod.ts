import { upstreamPortInPod } from "../../core/gates/upstream-port.ts";
import type { KubeObject } from "../runtime/kube-client.ts";
import { INTERCEPTION_LABEL } from "./gated-by.ts";

/** The container of the gate in a pod. A pod has a gate when one of its containers or init containers has this name. */
export const GATE_CONTAINER = "postern-gate";
/** The init container by which packets to the app's port go to the gate. */
export const REDIRECT_CONTAINER = "postern-redirect";
/** On a pod or its namespace: admitted with a gate, or not at all. */
export const GUARDED_LABEL = "postern.dev/guarded";

/** Any value but "false" asks for a gate: a pod with "True" must not start without one. */
export const asksForGate = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[GUARDED_LABEL] !== undefined && labels[GUARDED_LABEL] !== "false";
/** The name of the ApiKeyPolicy, which need not exist yet. Read from a pod template, and written on the pod by the webhook. */
export const POLICY_ANNOTATION = "postern.dev/policy";

/** What is kept of a pod. */
export interface PodSummary {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether it may serve requests: it runs, and is not being deleted. A pod whose node is lost may run on. */
  readonly isRunning: boolean;
  /** Whether its containers have ended for good; a pod that is being deleted may still serve. */
  readonly hasEnded: boolean;
  /** undefined for a pod without one. */
  readonly gate: GateSummary | undefined;
  /** The policy that its gate was injected for; undefined for a gate that was put there by other means. */
  readonly policy: string | undefined;
}

/** What is kept of a pod with a gate. */
export interface GateSummary {
  /** The port of the app; undefined when the gate's environment does not say it. */
  readonly guards: number | undefined;
  /** Whether packets to the app's port go to the gate. */
  readonly redirects: boolean;
  /** Whether the pod has the network of its node. */
  readonly isOnHostNetwork: boolean;
  /** The ports of the gate itself, at which it serves and answers probes. */
  readonly own: readonly number[];
  /** The TCP ports that the pod's containers list, the gate too. */
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

/** A pod with only what `toPod` reads: pods are the largest collection of a cluster, and all of them are kept in memory. */
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

/** Nothing of a pod without a gate. Of the environment the app's port alone: an address may have a password in it. */
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
  const env = guards === undefined ? [] : [{ name: UPSTREAM, value: `http://127.0.0.1:${guards}` }];
  const redirect = all.filter(({ name }) => name === REDIRECT_CONTAINER).map(({ name }) => ({ name }));
  return {
    containers: [{ name: "", ports: tcpPorts(all.filter((one) => one !== gate)) }],
    initContainers: [{ name: GATE_CONTAINER, env, ports: tcpPorts([gate]) }, ...redirect],
    ...(hostNetwork === true ? { hostNetwork } : {}),
  };
}

/** The port of the app behind a gate; undefined when its address is not a plain text, or not in the pod. */
const guardedBy = ({ env = [] }: Container): number | undefined =>
  upstreamPortInPod(env.find(({ name }) => name === UPSTREAM)?.value);

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

/** Of a spec that was trimmed. */
function toGate({ containers = [], initContainers = [], hostNetwork = false }: PodSpec): GateSummary | undefined {
  const gate = initContainers.find(({ name }) => name === GATE_CONTAINER);
  if (gate === undefined) return undefined;
  return {
    guards: guardedBy(gate),
    redirects: initContainers.some(({ name }) => name === REDIRECT_CONTAINER),
    isOnHostNetwork: hostNetwork,
    own: (gate.ports ?? []).map(({ containerPort }) => containerPort),
    ports: [...containers, gate].flatMap(({ ports = [] }) =>
      ports.map(({ name, containerPort: number }) => ({ name, number })),
    ),
  };
}

export type Interception = "Port" | "Redirect" | "None";

/**
 * How requests to the app's port of a pod with a gate are led to the gate: as its policy said when the pod was made. `now` is what the
 * policy says; it decides about a pod without the label, which is from an earlier release or got its gate by hand.
 */
export function interceptionOf(
  { gate, labels }: Pick<PodSummary, "gate" | "labels">,
  now: Interception = "Port",
): Interception {
  if (gate?.redirects === true) return "Redirect";
  const made = labels[INTERCEPTION_LABEL];
  return made === "None" || (made === undefined && now === "None") ? "None" : "Port";
}

/** Returns the number that a port means in a pod; `undefined` for a name that the pod does not have. */
export function portIn({ guards, own, ports }: GateSummary, port: string | number): number | undefined {
  if (typeof port === "number") return port;
  const number = ports.find(({ name }) => name === port)?.number;
  // The gate took the name over from the app's port.
  return number !== undefined && own.includes(number) ? guards : number;
}
