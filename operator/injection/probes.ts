import { type GateProbe, probePath } from "../../core/gates/probes.ts";
import {
  type Container,
  type ContainerPort,
  type Handler,
  isTcp,
  type PortRef,
  PROBES,
  type ProbeName,
} from "./pod.ts";

/*
 * Redirects probes of the guarded port to the gate's admin port, because the kubelet has no API key (core/gates/probes.ts). Probes of other
 * ports, probes that name a host, and `exec` probes remain unchanged.
 */

/** Probe as it was before injection. */
export interface FormerProbe {
  readonly container: string;
  readonly probe: ProbeName;
  readonly handler: Handler;
}

export interface Detour {
  readonly container: Container;
  readonly probes: readonly GateProbe[];
  readonly former: readonly FormerProbe[];
}

/** Kubernetes' default for `timeoutSeconds`. */
const TIMEOUT_SECONDS = 1;

/** Redirects the container's probes of the guarded port to the gate's admin port. */
export function detourProbes(container: Container, guarded: number, adminPort: number): Detour {
  let changed = container;
  const probes: GateProbe[] = [];
  const former: FormerProbe[] = [];
  for (const name of PROBES) {
    const probe = container[name];
    if (probe === undefined) continue;
    const made = toGateProbe(probe, container, guarded);
    if (made === undefined) continue;
    const path = probePath(container.name, name);
    const { httpGet, tcpSocket, grpc, ...timing } = probe;
    probes.push({ path, timeoutMs: 1000 * (probe.timeoutSeconds ?? TIMEOUT_SECONDS), probe: made });
    former.push({ container: container.name, probe: name, handler: { httpGet, tcpSocket, grpc } });
    changed = { ...changed, [name]: { ...timing, httpGet: { path, port: adminPort, scheme: "HTTP" } } };
  }
  return { container: changed, probes, former };
}

function toGateProbe(
  { httpGet, tcpSocket, grpc }: Handler,
  { ports = [] }: Container,
  guarded: number,
): GateProbe["probe"] | undefined {
  const isGuarded = (port: PortRef) => portNumber(port, ports) === guarded;
  if (httpGet !== undefined && !httpGet.host && isGuarded(httpGet.port)) {
    const { path = "", scheme = "HTTP", httpHeaders = [] } = httpGet;
    const target = path.startsWith("/") ? path : `/${path}`;
    return {
      kind: "http",
      port: guarded,
      target,
      isTls: scheme === "HTTPS",
      headers: httpHeaders.map(({ name, value }) => ({ name, value })),
    };
  }
  if (tcpSocket !== undefined && !tcpSocket.host && isGuarded(tcpSocket.port)) return { kind: "tcp", port: guarded };
  if (grpc?.port === guarded) return { kind: "grpc", port: guarded, service: grpc.service ?? "" };
  return undefined;
}

/** Returns the port number of a probe or hook. Kubernetes resolves a port name among the ports of the same container. */
export function portNumber(port: PortRef, ports: readonly ContainerPort[]): number | undefined {
  return typeof port === "number" ? port : ports.find((one) => one.name === port && isTcp(one))?.containerPort;
}

/** Returns the container with its original probe restored. */
export function restoreProbe(container: Container, { probe: name, handler }: FormerProbe): Container {
  const probe = container[name];
  if (probe === undefined) return container;
  const { httpGet: _, ...timing } = probe;
  return { ...container, [name]: { ...timing, ...handler } };
}
