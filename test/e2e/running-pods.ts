import type { KubernetesObjects } from "../harness/kubernetes-objects.ts";

/* Pods as objects of a real API server without nodes: the test sets their state. */

export interface PodOptions {
  readonly app: string;
  /** Container and init container of a gate injected for app port 8080. Default: none. */
  readonly gate?: boolean | { readonly guards?: number; readonly redirects?: boolean };
  readonly phase?: string;
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

/** Creates a running pod and returns a function that deletes it. */
export async function runPod(
  world: { readonly objects: KubernetesObjects; readonly namespace: string },
  name: string,
  options: PodOptions,
): Promise<() => Promise<void>> {
  const { app, gate = false, phase = "Running", namespace = world.namespace, labels = {}, annotations = {} } = options;
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { app, ...labels }, annotations },
    spec: {
      automountServiceAccountToken: false,
      containers: [{ name: "app", image: "app" }],
      initContainers: gate === false ? [] : gateContainers(gate === true ? {} : gate),
    },
  };
  const { objects } = world;
  await objects.create(pod);
  await objects.patch(pod, { status: { phase } }, "status");
  return async () => {
    if ((await objects.get(pod)) !== undefined) await objects.remove(pod, { gracePeriodSeconds: "0" });
  };
}

const gateContainers = ({ guards = 8080, redirects = false }: { guards?: number; redirects?: boolean }) => [
  {
    name: "postern-gate",
    image: "gate",
    restartPolicy: "Always",
    env: [{ name: "POSTERN_UPSTREAM", value: `http://127.0.0.1:${guards}` }],
    ports: [{ name: "http", containerPort: 19_080 }],
  },
  ...(redirects ? [{ name: "postern-redirect", image: "redirect" }] : []),
];
