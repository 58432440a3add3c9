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
 * Probes of the app that go to the guarded port. Kubelet has no key, so it asks the gate instead (core/gates/probes.ts). Probes that
 * go elsewhere, name a host, or run a program stay as they are.
 */

/** A probe as it was. */
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

/** Kubelet gives a probe a second unless it says more. */
const TIMEOUT_SECONDS = 1;

/** Sends the container's probes of the guarded port to the gate's admin port. */
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

/** Returns the number that a probe or hook of a container means. Kubernetes looks a name up in that container's ports. */
export function portNumber(port: PortRef, ports: readonly ContainerPort[]): number | undefined {
  return typeof port === "number" ? port : ports.find((one) => one.name === port && isTcp(one))?.containerPort;
}

/** The container with a probe as it was before. */
export function restoreProbe(container: Container, { probe: name, handler }: FormerProbe): Container {
  const probe = container[name];
  if (probe === undefined) return container;
  const { httpGet: _, ...timing } = probe;
  return { ...container, [name]: { ...timing, ...handler } };
}
