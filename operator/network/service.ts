import type { PodSummary } from "../pods/pod.ts";
import type { FollowedKind, FollowedObjects } from "../runtime/follow-objects.ts";
import type { KubeObject } from "../runtime/kube-client.ts";

/* Fields of a Kubernetes Service that determine where it sends requests. */

export interface ServiceSummary {
  readonly namespace: string;
  readonly name: string;
  /** Pod labels that the Service selects; empty for a Service without a selector, whose endpoints are created separately. */
  readonly selector: Readonly<Record<string, string>>;
  /** Whether the Service resolves to the addresses of its pods, so that clients choose the port themselves. */
  readonly isHeadless: boolean;
  /** Target port number or name of each TCP port of the Service. */
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

/** Returns a Service with only the fields that `toService` reads. */
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

export const SERVICES: FollowedKind<ServiceSummary> = {
  ...{ groupPath: "/api/v1", plural: "services", trim: trimService, toSeen: toService },
};
export type Services = FollowedObjects<ServiceSummary>;

/** Returns a function that checks whether the Service selects a pod. */
export function selectionOf({ selector }: ServiceSummary): (pod: Pick<PodSummary, "labels">) => boolean {
  const desired = Object.entries(selector);
  return ({ labels }) => desired.length > 0 && desired.every(([name, value]) => labels[name] === value);
}

/**
 * Returns the names and numbers by which a Service can target a port of a pod. If several ports share a name, Kubernetes uses the first
 * one, and regular containers come before sidecars.
 */
export function targetsOf({ gate }: Pick<PodSummary, "gate">, port: number): ReadonlyArray<string | number> {
  const firsts = new Map<string, number>();
  for (const { name, number } of gate?.ports ?? []) {
    if (name !== undefined && !firsts.has(name)) firsts.set(name, number);
  }
  return [port, ...[...firsts].flatMap(([name, number]) => (number === port ? name : []))];
}
