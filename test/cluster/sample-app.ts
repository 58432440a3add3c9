import { readFileSync } from "node:fs";
import { join } from "node:path";

/* A sample app with a gate beside it, and pods that send it requests. All run programs of `pods/` on the gate's image, which has Node. */

const program = (name: string) => readFileSync(join(import.meta.dirname, "pods", name), "utf8");
const SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
} as const;
const POD_SECURITY = { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } } as const;

export const programs = (namespace: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "programs", namespace },
  data: { "app.mjs": program("app.mjs"), "load.mjs": program("load.mjs") },
});

const HOOK_TOKEN = "of-the-sample-app";
const VOLUMES = { volumes: [{ name: "programs", configMap: { name: "programs" } }] };
const MOUNTS = { volumeMounts: [{ name: "programs", mountPath: "/programs", readOnly: true }] };

export const policy = (namespace: string, { limit = 1_000_000 }: { limit?: number } = {}) => ({
  apiVersion: "postern.dev/v1alpha1",
  kind: "ApiKeyPolicy",
  metadata: { name: "orders", namespace },
  spec: {
    selector: { matchLabels: { app: "orders" } },
    api: { name: "orders" },
    target: { port: "http" },
    credentials: [{ header: { name: "Authorization", scheme: "Bearer" } }],
    rules: [
      { match: { methods: ["GET"], path: { prefix: "/healthz" } }, access: "Anonymous" },
      {
        match: { methods: ["POST"], path: { prefix: "/orders" } },
        permissions: "orders.write",
        ratelimits: [{ name: "writes", limit, duration: "1h" }],
      },
    ],
  },
});

export const role = (namespace: string) => ({
  apiVersion: "postern.dev/v1alpha1",
  kind: "Role",
  metadata: { name: "orders-editor", namespace },
  // Keys have it, so without this word its deletion, and that of its namespace, waits for them.
  spec: { name: "orders.editor", permissions: ["orders.write"], deletionPolicy: "Delete" },
});

export interface GateOptions {
  readonly namespace: string;
  readonly image: string;
  readonly workspaceId: string;
  readonly cluster: string;
  readonly redisUrl: string;
}

/** The gate as a native sidecar, written by hand. */
const gate = ({ namespace, image, workspaceId, cluster, redisUrl }: GateOptions) => ({
  name: "postern-gate",
  image,
  imagePullPolicy: "IfNotPresent",
  restartPolicy: "Always",
  securityContext: SECURITY,
  args: [
    `--workspace=${workspaceId}`,
    `--policy=${cluster}/${namespace}/orders`,
    "--upstream=http://127.0.0.1:3000",
    "--address-share=100",
  ],
  env: [
    { name: "REDIS_URL", value: redisUrl },
    { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "POSTERN_POD", value: `${namespace}/$(POD)` },
    { name: "POSTERN_HOOK_TOKEN", value: HOOK_TOKEN },
  ],
  ports: [
    { name: "gate", containerPort: 8000 },
    { name: "gate-admin", containerPort: 8001 },
  ],
  startupProbe: { httpGet: { path: "/livez", port: 8001 }, periodSeconds: 1, failureThreshold: 60 },
  readinessProbe: { httpGet: { path: "/readyz", port: 8001 }, periodSeconds: 1 },
  lifecycle: {
    preStop: {
      httpGet: { path: "/pod-ends", port: 8001, httpHeaders: [{ name: "Postern-Hook-Token", value: HOOK_TOKEN }] },
    },
  },
  resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "96Mi" } },
});

const app = (image: string) => ({
  name: "app",
  image,
  imagePullPolicy: "IfNotPresent",
  command: ["node", "/programs/app.mjs"],
  securityContext: SECURITY,
  ports: [{ name: "http", containerPort: 3000 }],
  readinessProbe: { tcpSocket: { port: 3000 }, periodSeconds: 1 },
  // Longer than the gate drains, so that the app is there for all that the gate still takes.
  lifecycle: { preStop: { sleep: { seconds: 8 } } },
  ...MOUNTS,
});

export const guardedApp = (options: GateOptions) => [
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "orders", namespace: options.namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "orders" } },
      strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels: { app: "orders" } },
        spec: {
          securityContext: POD_SECURITY,
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 30,
          initContainers: [gate(options)],
          containers: [app(options.image)],
          ...VOLUMES,
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "orders", namespace: options.namespace },
    spec: { selector: { app: "orders" }, ports: [{ port: 80, targetPort: "gate" }] },
  },
];

/** A pod that runs a program and restarts never. */
export const pod = (namespace: string, name: string, image: string, command: readonly string[]) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, labels: { app: name } },
  spec: {
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 1,
    securityContext: POD_SECURITY,
    automountServiceAccountToken: false,
    containers: [{ name, image, imagePullPolicy: "IfNotPresent", command, securityContext: SECURITY, ...MOUNTS }],
    ...VOLUMES,
  },
});
