import { readFileSync } from "node:fs";
import { join } from "node:path";

/* Sample apps that are guarded, and pods that send them requests. All run programs of `pods/` on the gate's image, which has Node. */

const program = (name: string) => readFileSync(join(import.meta.dirname, "pods", name), "utf8");
const SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
} as const;
const POD_SECURITY = { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } } as const;
const VOLUMES = { volumes: [{ name: "programs", configMap: { name: "programs" } }] };
const MOUNTS = { volumeMounts: [{ name: "programs", mountPath: "/programs", readOnly: true }] };
/** What a team writes on a pod template, and nothing else. */
const GUARDED = { "postern.dev/guarded": "true" } as const;

export const APP_PORT = 3000;

export const programs = (namespace: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "programs", namespace },
  data: { "app.mjs": program("app.mjs"), "load.mjs": program("load.mjs") },
});

export interface PolicyOptions {
  readonly name?: string;
  readonly limit?: number;
  readonly interception?: "Port" | "Redirect";
}

export const policy = (
  namespace: string,
  { name = "orders", limit = 1_000_000, interception }: PolicyOptions = {},
) => ({
  apiVersion: "postern.dev/v1alpha1",
  kind: "ApiKeyPolicy",
  metadata: { name, namespace },
  spec: {
    selector: { matchLabels: { app: name } },
    api: { name },
    target: { port: "http" },
    ...(interception === undefined ? {} : { interception }),
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

/** A key for the API of the policy, in the Secret `orders-key`. */
export const apiKey = (namespace: string) => ({
  apiVersion: "postern.dev/v1alpha1",
  kind: "ApiKey",
  metadata: { name: "orders", namespace },
  spec: {
    policyRef: { name: "orders" },
    owner: "billing",
    roles: ["orders.editor"],
    secretRef: { name: "orders-key" },
  },
});

/** Lets the operator write Secrets of the namespace, as docs/api-keys.md says. */
export const secretsRole = (namespace: string, operator: { name: string; namespace: string }) => {
  const metadata = { name: "postern-api-keys", namespace };
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "patch"] }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: metadata.name };
  const subjects = [{ kind: "ServiceAccount", ...operator }];
  return [
    { apiVersion, kind: "Role", metadata, rules },
    { apiVersion, kind: "RoleBinding", metadata, roleRef, subjects },
  ];
};

export interface AppOptions {
  readonly namespace: string;
  readonly image: string;
  readonly name?: string;
  readonly replicas?: number;
  /** Names its policy, which need not exist yet. */
  readonly policy?: string;
  /** Whether it asks for a gate; it does when left out. */
  readonly guarded?: boolean;
}

/** A Deployment and its Service, which names the port that the gate takes over. */
export const guardedApp = ({ namespace, image, name = "orders", replicas = 2, policy, guarded = true }: AppOptions) => [
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: {
          labels: { app: name, ...(guarded ? GUARDED : {}) },
          ...(policy === undefined ? {} : { annotations: { "postern.dev/policy": policy } }),
        },
        spec: {
          securityContext: POD_SECURITY,
          automountServiceAccountToken: false,
          containers: [
            {
              name: "app",
              image,
              imagePullPolicy: "IfNotPresent",
              command: ["node", "/programs/app.mjs"],
              securityContext: SECURITY,
              ports: [{ name: "http", containerPort: APP_PORT }],
              // Kubelet has no key.
              readinessProbe: { httpGet: { path: "/ready", port: "http" }, periodSeconds: 1 },
              ...MOUNTS,
            },
          ],
          ...VOLUMES,
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: { selector: { app: name }, ports: [{ port: 80, targetPort: "http" }] },
  },
];

/** A pod that runs a program and restarts never. */
export const pod = (namespace: string, name: string, image: string, command: readonly string[]) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, labels: { app: name } },
  spec: podSpec(name, image, command),
});

/** A guarded Job, whose app listens a moment and then ends by itself. */
export const guardedJob = (namespace: string, image: string) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "batch", namespace },
  spec: {
    backoffLimit: 0,
    template: {
      // Not the labels of the app, or its Service would send it requests.
      metadata: { labels: { app: "batch", ...GUARDED }, annotations: { "postern.dev/policy": "orders" } },
      spec: withPort(podSpec("batch", image, ["node", "-e", "setTimeout(() => {}, 500)"])),
    },
  },
});

const podSpec = (name: string, image: string, command: readonly string[]) => ({
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 1,
  securityContext: POD_SECURITY,
  automountServiceAccountToken: false,
  containers: [{ name, image, imagePullPolicy: "IfNotPresent", command, securityContext: SECURITY, ...MOUNTS }],
  ...VOLUMES,
});

const withPort = (spec: ReturnType<typeof podSpec>) => ({
  ...spec,
  containers: spec.containers.map((one) => ({ ...one, ports: [{ name: "http", containerPort: APP_PORT }] })),
});
