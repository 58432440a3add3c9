import type { GateProbes } from "../../core/gates/probes.ts";
import { type Before, withHookPort, withoutGate } from "./before.ts";
import type { GateResources, InjectionConfig } from "./config.ts";
import {
  gateContainer,
  redirectContainer,
  resourcesOf,
  snapshotVolume,
  tlsVolume,
  tokenVolume,
} from "./gate-container.ts";
import {
  BEFORE_ANNOTATION,
  GATE_CONTAINER,
  GATE_VOLUMES,
  GATED_BY_LABEL,
  GUARDED_LABEL,
  gatedBy,
  INTERCEPTION_LABEL,
  POLICY_ANNOTATION,
  RESOURCE_ANNOTATIONS,
  TLS_SECRET_ANNOTATION,
} from "./names.ts";
import { type Container, HOOKS, isTcp, type Pod, runningContainers } from "./pod.ts";
import type { PolicyOfPod } from "./policy-of-pod.ts";
import { detourProbes, portNumber } from "./probes.ts";

/*
 * Injects a gate into a pod. Pure and idempotent: the same pod and policy give the same result, even if the pod already has a gate.
 * `interception` determines how requests reach the gate:
 *
 *   Port      the gate's port takes over the names of the app's port, so Services that use a name send requests to the gate
 *   Redirect  packets for the app's port go to the gate, from every sender
 *   None      the gate runs beside the app, for a gateway that calls its ext-auth endpoint
 */

export interface Injection {
  readonly config: InjectionConfig;
  readonly cluster: string;
  /** Namespace of the pod. It is separate because a pod that is being created may not contain it yet. */
  readonly namespace: string;
  readonly workspaceId: string;
  readonly policy: PolicyOfPod;
  /** Token for a pod that has no gate yet. A pod that already has a gate keeps its token. */
  readonly hookToken: string;
  readonly snapshotKey: string;
}

export type Injected =
  | { readonly pod: Pod; readonly warnings: readonly string[]; readonly refused?: never }
  /** Reason why the pod is rejected. */
  | { readonly refused: string };

interface Target {
  readonly number: number;
  /**
   * All names that the pod's containers give to the port. Kubernetes allows several names for one number, and a Service may use any of
   * them.
   */
  readonly names: readonly string[];
}

const OWN_PORT_NAME = "postern";

/**
 * Maximum number of containers of a pod, including init containers. Kubernetes does not limit this number, and a pod with many containers
 * would delay the admission of others.
 */
export const CONTAINERS_MAX = 250;
/**
 * Maximum number of ports that the containers of a pod list in total. Injection compares the ports with each other, and searches for two
 * unused ones.
 */
export const CONTAINER_PORTS_MAX = 2_000;

export function injectGate(given: Pod, injection: Injection): Injected {
  const { config, policy, cluster, namespace, workspaceId } = injection;
  const oversized = exceeds(given);
  if (oversized !== undefined) return { refused: oversized };
  const pod = withoutGate(given);
  if (pod === undefined)
    return { refused: `the pod has a container with the name ${GATE_CONTAINER} that was not injected.` };
  const refused = cannotGuard(pod, injection);
  if (refused !== undefined) return { refused };
  const resources = resourcesOf(pod, config.resources);
  if ("refused" in resources) return resources;
  const tls = tlsSecretOf(pod);
  if ("refused" in tls) return tls;
  const target = findTarget(policy, pod);
  if ("refused" in target) return target;

  const [gatePort, adminPort] = choosePorts(pod, config);
  const moved = moveIn(pod, target, policy.interception, adminPort);
  const gate = gateContainer({
    config,
    resources: resources satisfies GateResources,
    protocol: policy.protocol,
    tlsSecret: tls.tlsSecret,
    policy: `${cluster}/${namespace}/${policy.name}`,
    workspaceId,
    upstreamPort: target.number,
    gatePort,
    adminPort,
    portNames: policy.interception === "Port" && target.names.length > 0 ? target.names : [OWN_PORT_NAME],
    probes: moved.probes,
    hookToken: drawnBefore(given, "POSTERN_HOOK_TOKEN") ?? injection.hookToken,
    snapshotKey: drawnBefore(given, "POSTERN_SNAPSHOT_KEY") ?? injection.snapshotKey,
  });
  const redirect =
    policy.interception === "Redirect" && config.redirectImage !== undefined
      ? [redirectContainer(config.redirectImage, { from: target.number, to: gatePort })]
      : [];
  const { metadata, spec } = moved.pod;
  return {
    warnings: warningsOf(target, resources, pod, injection),
    pod: {
      ...moved.pod,
      metadata: {
        ...metadata,
        labels: {
          ...metadata.labels,
          [GATED_BY_LABEL]: gatedBy(policy.name),
          [INTERCEPTION_LABEL]: policy.interception,
        },
        annotations: {
          ...metadata.annotations,
          [POLICY_ANNOTATION]: policy.name,
          [BEFORE_ANNOTATION]: JSON.stringify(moved.before),
        },
      },
      spec: {
        ...spec,
        initContainers: [gate, ...redirect, ...(spec.initContainers ?? [])],
        containers: spec.containers.map((container) => sleepBeforeEnd(container, pod, config)),
        volumes: [
          ...(spec.volumes ?? []),
          snapshotVolume,
          ...(config.tokenAudience === undefined ? [] : [tokenVolume(config.tokenAudience)]),
          ...(tls.tlsSecret === undefined ? [] : [tlsVolume(tls.tlsSecret)]),
        ],
      },
    },
  };
}

function exceeds({ spec: { containers, initContainers = [] } }: Pod): string | undefined {
  const all = [...initContainers, ...containers];
  if (all.length > CONTAINERS_MAX)
    return `the pod has ${all.length} containers; the maximum for a guarded pod is ${CONTAINERS_MAX}.`;
  const ports = all.reduce((sum, { ports: listed = [] }) => sum + listed.length, 0);
  return ports > CONTAINER_PORTS_MAX
    ? `the containers of the pod list ${ports} ports; the maximum for a guarded pod is ${CONTAINER_PORTS_MAX}.`
    : undefined;
}

function cannotGuard({ spec }: Pod, { config, policy }: Injection): string | undefined {
  if (spec.hostNetwork === true) {
    return "a pod with hostNetwork shares the ports of its node, which a gate cannot guard: remove hostNetwork.";
  }
  if (spec.os?.name === "windows") return "gates run only on Linux.";
  const sharing = [...(spec.initContainers ?? []), ...spec.containers].find(({ volumeMounts = [] }) =>
    volumeMounts.some(({ name }) => GATE_VOLUMES.includes(name)),
  );
  if (sharing !== undefined) {
    return `the container ${sharing.name} mounts a volume that is reserved for the gate (${GATE_VOLUMES.join(", ")}): rename your volume.`;
  }
  if (policy.interception === "Redirect" && config.redirectImage === undefined) {
    return `the ApiKeyPolicy ${policy.name} has interception Redirect, which requires an image with iptables: set --redirect-image of the operator.`;
  }
  return undefined;
}

/**
 * Finds the app's port. If the policy gives a number, no container need list the port. If it gives a name, a container must list the name,
 * and all containers must use it for the same number. With interception `Port`, this also applies to every name that the gate takes over,
 * and the port must have no `hostPort`.
 */
function findTarget(
  { name: policy, port, interception }: PolicyOfPod,
  pod: Pod,
): Target | { readonly refused: string } {
  const listed = runningContainers(pod).flatMap(({ name: container, ports = [] }) =>
    ports.filter(isTcp).map((one) => ({ ...one, container })),
  );
  const number = typeof port === "number" ? port : listed.find(({ name }) => name === port)?.containerPort;
  if (number === undefined) {
    return {
      refused: `the ApiKeyPolicy ${policy} guards the port ${port}, and no container of the pod has a TCP port of this name.`,
    };
  }
  const own = listed.filter(({ containerPort }) => containerPort === number);
  const names = [...new Set(own.flatMap(({ name }) => name ?? []))];
  const taken = interception === "Port" ? names : names.filter((name) => name === port);
  const other = listed.find(({ name, containerPort }) => containerPort !== number && taken.some((one) => one === name));
  if (other !== undefined) {
    return {
      refused: `the port name ${other.name} is ${number} and, in the container ${other.container}, ${other.containerPort}: a gate guards only one port, so rename the other one.`,
    };
  }
  const onNode = own.find(({ hostPort = 0 }) => hostPort !== 0);
  if (interception === "Port" && onNode !== undefined) {
    return {
      refused: `the container ${onNode.container} has hostPort ${onNode.hostPort} for the guarded port ${number}, through which clients of the node bypass the gate. Remove hostPort and use a Service of type NodePort, or set spec.interception of the ApiKeyPolicy ${policy} to Redirect.`,
    };
  }
  return { number, names: typeof port === "number" ? names : [port, ...names.filter((name) => name !== port)] };
}

/** Returns the configured ports. A port that a container already lists is replaced by the next port that no container lists. */
function choosePorts(pod: Pod, { gatePort, adminPort }: InjectionConfig): [number, number] {
  const used = new Set(runningContainers(pod).flatMap(({ ports = [] }) => ports.map((port) => port.containerPort)));
  const free = (first: number): number => {
    let port = first;
    while (used.has(port)) port = port === 65_535 ? 1_024 : port + 1;
    used.add(port);
    return port;
  };
  return [free(gatePort), free(adminPort)];
}

interface MovedIn {
  readonly pod: Pod;
  readonly probes: GateProbes;
  readonly before: Before;
}

/** Adapts the other containers to a gate in front of the guarded port. */
function moveIn(pod: Pod, target: Target, interception: PolicyOfPod["interception"], adminPort: number): MovedIn {
  const before: Before = { ports: [], probes: [], hooks: [] };
  const probes: GateProbes = [];

  const change = (container: Container): Container => {
    if (interception === "None") return container;
    // Changes probes and hooks before the ports, because their port names refer to the container's original ports.
    const detour = detourProbes(container, target.number, adminPort);
    probes.push(...detour.probes);
    before.probes.push(...detour.former);
    return interception === "Port" ? giveUpNames(detour.container, target, before) : detour.container;
  };
  const { initContainers, containers } = pod.spec;
  const spec = {
    ...pod.spec,
    ...(initContainers === undefined
      ? {}
      : { initContainers: initContainers.map((one) => (one.restartPolicy === "Always" ? change(one) : one)) }),
    containers: containers.map(change),
  };
  return { pod: { ...pod, spec }, probes, before };
}

/**
 * Removes the port names that the gate takes over. A Service uses the first port with a name, and the app's containers come before the
 * gate's.
 */
function giveUpNames(container: Container, { number, names }: Target, before: Before): Container {
  let changed = container;
  for (const hook of HOOKS) {
    const { httpGet, tcpSocket } = container.lifecycle?.[hook] ?? {};
    const name = names.find((one) => one === httpGet?.port || one === tcpSocket?.port);
    if (name === undefined || portNumber(name, container.ports ?? []) === undefined) continue;
    changed = withHookPort(changed, hook, number);
    before.hooks.push({ container: container.name, hook, port: name });
  }
  if (changed.ports === undefined) return changed;
  return {
    ...changed,
    ports: changed.ports.map((port, at) => {
      if (port.name === undefined || port.containerPort !== number || !isTcp(port)) return port;
      const { name, ...unnamed } = port;
      before.ports.push({ container: container.name, at, number, name });
      return unnamed;
    }),
  };
}

/**
 * Delays the termination of the app, because clients still send requests until they notice that the pod terminates. The delay is part of
 * the grace period and takes at most half of it.
 */
function sleepBeforeEnd(container: Container, { spec }: Pod, { preStopSeconds }: InjectionConfig): Container {
  const { terminationGracePeriodSeconds: graceSeconds = 30 } = spec;
  const seconds = Math.min(preStopSeconds, Math.floor(graceSeconds / 2));
  if (container.lifecycle?.preStop !== undefined || seconds < 1) return container;
  return { ...container, lifecycle: { ...container.lifecycle, preStop: { sleep: { seconds } } } };
}

/** Returns the random value that a previous injection generated for this variable, so that injection is idempotent. */
function drawnBefore({ spec: { initContainers = [] } }: Pod, variable: string): string | undefined {
  const gate = initContainers.find(({ name }) => name === GATE_CONTAINER);
  return gate?.env?.find(({ name }) => name === variable)?.value;
}

function warningsOf({ number, names }: Target, { cpuLimit }: GateResources, pod: Pod, { policy }: Injection): string[] {
  const { name: policyName, interception, overridden } = policy;
  const guarded = pod.metadata.labels?.[GUARDED_LABEL];
  return [
    ...overridden.map(
      (other) => `the ApiKeyPolicy ${other} also selects this pod; the gate enforces ${policyName}, which is older.`,
    ),
    ...(guarded === undefined || guarded === "true" || guarded === "false"
      ? []
      : [`the label ${GUARDED_LABEL} has the value "${guarded}", which counts as "true": write "true" or "false".`]),
    // Warns if all containers of the app have a CPU limit. The namespace then probably has a quota for CPU limits. If it has one,
    // Kubernetes rejects a pod whose gate has no CPU limit, with an error that names only the injected container.
    ...(cpuLimit === undefined && pod.spec.containers.every(({ resources }) => resources?.limits?.cpu !== undefined)
      ? [
          `the gate has no CPU limit, unlike the other containers: if a ResourceQuota counts limits.cpu, annotate the pod with ${RESOURCE_ANNOTATIONS.cpuLimit}.`,
        ]
      : []),
    ...(interception === "Port" && names.length === 0
      ? [
          `the port ${number} has no name that the gate can take over: name the container port and refer to the name in Services, or use interception Redirect. Until then, only the port "${OWN_PORT_NAME}" of the pod leads to the gate.`,
        ]
      : []),
  ];
}

/** Pattern of Secret names: an RFC 1123 subdomain. */
const SECRET_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

/**
 * Returns the Secret that, according to the pod's annotations, contains the server certificate of the gate; `undefined` if the gate does
 * not use TLS.
 */
function tlsSecretOf({
  metadata: { annotations = {} },
}: Pod): { readonly tlsSecret: string | undefined } | { readonly refused: string } {
  const { [TLS_SECRET_ANNOTATION]: tlsSecret } = annotations;
  if (tlsSecret !== undefined && !SECRET_NAME.test(tlsSecret)) {
    return { refused: `the annotation ${TLS_SECRET_ANNOTATION} is not the name of a Secret.` };
  }
  return { tlsSecret };
}
