import type { PodSummary } from "../pods/pod.ts";
import type { KubeObject } from "../runtime/kube-client.ts";

/* A Service of Kubernetes, as far as it says where it sends requests. */

export interface ServiceSummary {
  readonly namespace: string;
  readonly name: string;
  /** Empty for a Service whose endpoints somebody else writes. */
  readonly selector: Readonly<Record<string, string>>;
  /** Whether it resolves to the addresses of its pods, so that clients choose the port themselves. */
  readonly isHeadless: boolean;
  /** The number of a port in the pods, or its name, for each TCP port of the Service. */
  readonly targets: ReadonlyArray<string | number>;
}

interface ServiceSpec {
  readonly selector?: Readonly<Record<string, string>>;
  readonly clusterIP?: string;
  readonly ports?: ReadonlyArray<{
    readonly protocol?: string;
    readonly port: number;
    readonly targetPort?: string | number;
  }>;
}

/** A Service with only what `toService` reads. */
export function trimService({ metadata, spec }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const { selector = {}, clusterIP = "", ports = [] } = (spec ?? {}) as ServiceSpec;
  return {
    metadata: { name, uid, resourceVersion, creationTimestamp, ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      selector,
      clusterIP: clusterIP === "None" ? clusterIP : "",
      ports: ports.map(({ protocol, port, targetPort = port }) => ({ protocol, port, targetPort })),
    },
  };
}

export function toService({ metadata: { name, namespace = "" }, spec }: KubeObject): ServiceSummary {
  const { selector = {}, clusterIP, ports = [] } = (spec ?? {}) as ServiceSpec;
  return {
    namespace,
    name,
    selector,
    isHeadless: clusterIP === "None",
    targets: ports
      .filter(({ protocol = "TCP" }) => protocol === "TCP")
      .map(({ port, targetPort = port }) => targetPort),
  };
}

/** Returns which pods a Service selects. */
export function selectionOf({ selector }: ServiceSummary): (pod: Pick<PodSummary, "labels">) => boolean {
  const desired = Object.entries(selector);
  return ({ labels }) => desired.length > 0 && desired.every(([name, value]) => labels[name] === value);
}

/** By what Services name a port of a pod. Kubernetes takes the first port of a name, and containers before sidecars. */
export function targetsOf({ gate }: Pick<PodSummary, "gate">, port: number): ReadonlyArray<string | number> {
  const firsts = new Map<string, number>();
  for (const { name, number } of gate?.ports ?? []) {
    if (name !== undefined && !firsts.has(name)) firsts.set(name, number);
  }
  return [port, ...[...firsts].flatMap(([name, number]) => (number === port ? name : []))];
}
