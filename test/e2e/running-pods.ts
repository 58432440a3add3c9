import type { TestKubernetes } from "../harness/kubernetes.ts";

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
  world: { readonly kubernetes: Pick<TestKubernetes, "kubectl">; readonly namespace: string },
  name: string,
  options: PodOptions,
): Promise<() => Promise<unknown>> {
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
  const kubectl = async (args: string[], stdin?: string) => {
    const { exitCode, stderr } = await world.kubernetes.kubectl(["-n", namespace, ...args], stdin);
    if (exitCode !== 0) throw new Error(stderr);
  };
  await kubectl(["create", "-f", "-"], JSON.stringify(pod));
  const status = JSON.stringify({ status: { phase } });
  await kubectl(["patch", "pod", name, "--subresource=status", "--type=merge", "-p", status]);
  return () => kubectl(["delete", "pod", name, "--ignore-not-found", "--grace-period=0", "--force"]);
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
