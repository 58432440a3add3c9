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
} from "./names.ts";
import { type Container, HOOKS, isTcp, type Pod, runningContainers } from "./pod.ts";
import type { PolicyOfPod } from "./policy-of-pod.ts";
import { detourProbes, portNumber } from "./probes.ts";
import { protocolsOf } from "./protocols.ts";

/*
 * Puts a gate into a pod. Pure: the same pod and policy make the same result, also when the pod has a gate already.
 *
 *   Port      the gate's port gets the names of the app's, so that Services that name it reach the gate
 *   Redirect  packets to the app's port go to the gate, from every sender
 *   None      the gate stands beside the app, for a gateway that asks it
 */

export interface Injection {
  readonly config: InjectionConfig;
  readonly cluster: string;
  /** The pod's; a pod that is being created need not name it itself. */
  readonly namespace: string;
  readonly workspaceId: string;
  readonly policy: PolicyOfPod;
  /** For a pod that has no gate yet. */
  readonly hookToken: string;
  readonly snapshotKey: string;
}

export type Injected =
  | { readonly pod: Pod; readonly warnings: readonly string[]; readonly refused?: never }
  /** Why the pod must not be admitted. */
  | { readonly refused: string };

interface Target {
  readonly number: number;
  /** All names that containers list for the number. Kubernetes allows several, and a Service may use any of them. */
  readonly names: readonly string[];
}

const OWN_PORT_NAME = "postern";

/** Init containers too. Kubernetes itself bounds neither number, and one pod must not hold up the admission of all others. */
export const CONTAINERS_MAX = 250;
/** Of all containers together. Injection compares ports with one another, and looks for two that none lists. */
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
  const protocols = protocolsOf(pod);
  if ("refused" in protocols) return protocols;
  const target = findTarget(policy, pod);
  if ("refused" in target) return target;

  const [gatePort, adminPort] = choosePorts(pod, config);
  const moved = moveIn(pod, target, policy.interception, adminPort);
  const gate = gateContainer({
    config,
    resources: resources satisfies GateResources,
    protocols,
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
          ...(protocols.tlsSecret === undefined ? [] : [tlsVolume(protocols.tlsSecret)]),
        ],
      },
    },
  };
}

function exceeds({ spec: { containers, initContainers = [] } }: Pod): string | undefined {
  const all = [...initContainers, ...containers];
  if (all.length > CONTAINERS_MAX)
    return `it has ${all.length} containers, and a guarded pod has at most ${CONTAINERS_MAX}.`;
  const ports = all.reduce((sum, { ports: listed = [] }) => sum + listed.length, 0);
  return ports > CONTAINER_PORTS_MAX
    ? `its containers list ${ports} ports, and those of a guarded pod list at most ${CONTAINER_PORTS_MAX}.`
    : undefined;
}

function cannotGuard({ spec }: Pod, { config, policy }: Injection): string | undefined {
  if (spec.hostNetwork === true) {
    return "a pod with hostNetwork shares its ports with its node, and a gate would guard none of them: leave hostNetwork out.";
  }
  if (spec.os?.name === "windows") return "gates run on Linux only.";
  const sharing = [...(spec.initContainers ?? []), ...spec.containers].find(({ volumeMounts = [] }) =>
    volumeMounts.some(({ name }) => GATE_VOLUMES.includes(name)),
  );
  if (sharing !== undefined) {
    return `the container ${sharing.name} mounts a volume that only the gate may have (${GATE_VOLUMES.join(", ")}): give yours another name.`;
  }
  if (policy.interception === "Redirect" && config.redirectImage === undefined) {
    return `the ApiKeyPolicy ${policy.name} has interception Redirect, which needs an image with iptables: the operator was given none (--redirect-image).`;
  }
  return undefined;
}

/**
 * A number is a port of the app whether a container lists it or not; a name must be listed, and mean one number. With `Port` the same
 * holds for every name that the gate takes over, and no way in to the number may be left that a name does not lead to the gate.
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
      refused: `the port name ${other.name} means ${number} and, in the container ${other.container}, ${other.containerPort}: a gate guards one port, so give the other one another name.`,
    };
  }
  const onNode = own.find(({ hostPort = 0 }) => hostPort !== 0);
  if (interception === "Port" && onNode !== undefined) {
    return {
      refused: `the container ${onNode.container} has hostPort ${onNode.hostPort} for the guarded port ${number}, by which clients of the node reach the app past the gate. Remove hostPort and use a Service of type NodePort, or set spec.interception of the ApiKeyPolicy ${policy} to Redirect.`,
    };
  }
  return { number, names: typeof port === "number" ? names : [port, ...names.filter((name) => name !== port)] };
}

/** The configured ports, or the next ones that no container lists. */
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

/** Changes what the other containers say about the guarded port. */
function moveIn(pod: Pod, target: Target, interception: PolicyOfPod["interception"], adminPort: number): MovedIn {
  const before: Before = { ports: [], probes: [], hooks: [] };
  const probes: GateProbes = [];

  const change = (container: Container): Container => {
    if (interception === "None") return container;
    // First the probes and hooks: their names of ports are looked up in the ports.
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

/** A Service takes the first port of the name, and containers come before the gate. */
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
 * An app that ends at once refuses the requests of clients that have not heard of it yet. The sleep comes out of the grace period, so
 * it takes at most half of it.
 */
function sleepBeforeEnd(container: Container, { spec }: Pod, { preStopSeconds }: InjectionConfig): Container {
  const { terminationGracePeriodSeconds: graceSeconds = 30 } = spec;
  const seconds = Math.min(preStopSeconds, Math.floor(graceSeconds / 2));
  if (container.lifecycle?.preStop !== undefined || seconds < 1) return container;
  return { ...container, lifecycle: { ...container.lifecycle, preStop: { sleep: { seconds } } } };
}

/** What was drawn for a gate that was injected before, so that doing it again changes nothing. */
function drawnBefore({ spec: { initContainers = [] } }: Pod, variable: string): string | undefined {
  const gate = initContainers.find(({ name }) => name === GATE_CONTAINER);
  return gate?.env?.find(({ name }) => name === variable)?.value;
}

function warningsOf({ number, names }: Target, { cpuLimit }: GateResources, pod: Pod, { policy }: Injection): string[] {
  const { name: policyName, interception, outdone } = policy;
  const guarded = pod.metadata.labels?.[GUARDED_LABEL];
  return [
    ...outdone.map(
      (other) =>
        `the ApiKeyPolicy ${other} selects this pod too; ${policyName} is older, and is the one that is enforced.`,
    ),
    ...(guarded === undefined || guarded === "true" || guarded === "false"
      ? []
      : [`the label ${GUARDED_LABEL} has the value "${guarded}", which counts as "true": write "true" or "false".`]),
    // Those of a namespace with a quota have one. Kubernetes itself refuses the pod then, and names the container alone.
    ...(cpuLimit === undefined && pod.spec.containers.every(({ resources }) => resources?.limits?.cpu !== undefined)
      ? [
          `the gate has no CPU limit, as the other containers have: where a ResourceQuota counts limits.cpu, annotate the pod with ${RESOURCE_ANNOTATIONS.cpuLimit}.`,
        ]
      : []),
    ...(interception === "Port" && names.length === 0
      ? [
          `the port ${number} has no name that the gate could take over: give the container port one and let Services name it, or use interception Redirect. Until then only the port "${OWN_PORT_NAME}" of the pod leads to the gate.`,
        ]
      : []),
  ];
}
