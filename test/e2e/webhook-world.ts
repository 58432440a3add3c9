import { randomBytes } from "node:crypto";
import { pino } from "pino";
import type { InjectionConfig } from "../../operator/injection/config.ts";
import { KubeError, type KubeObject, type OpenKubeClient } from "../../operator/runtime/kube-client.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { type Operator, type OperatorConfig, startOperator } from "../../operator/start.ts";
import { aConfig } from "../../operator/test/pods.ts";
import type { Lifetimes } from "../../operator/webhook/certificate-set.ts";
import { webhookConfigurations } from "../../operator/webhook/configurations.ts";
import { startOwnKubernetes } from "../harness/kubernetes.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { applyCrds, openStore, type Store } from "./operator-world.ts";

/*
 * A separate Kubernetes API server that calls the webhook of real operators, without nodes: pods are created and inspected but never run.
 * It is separate because webhook configurations are cluster-wide.
 */

export type Cluster = Awaited<ReturnType<typeof startOwnKubernetes>>;

// biome-ignore lint/suspicious/noExplicitAny: tests reach into pods of any shape.
export type AnyPod = any;

export interface Created {
  /** `undefined` if the API server rejected it; `message` then has the reason. */
  readonly pod?: AnyPod;
  readonly message: string;
}

export interface WebhookWorld {
  readonly cluster: Cluster;
  readonly client: OpenKubeClient;
  readonly store: Store;
  /** Port of the webhook server. */
  readonly port: number;
  startOperator(options?: {
    port?: number;
    lifetimes?: Lifetimes;
    /** Delay until a deleted configuration is recreated. */
    restoreMs?: number;
    /** Folder with a certificate, instead of one created by the operator. */
    certDir?: string;
    injection?: Partial<InjectionConfig>;
    /** Default: the api-server of this world. */
    api?: Pick<OperatorConfig, "apiUrl" | "keys">;
  }): Promise<Operator>;
  /** Creates a namespace with these labels and returns its name. */
  namespace(labels?: Record<string, string>): Promise<string>;
  policy(namespace: string, name: string, spec?: object): Promise<void>;
  create(namespace: string, pod: object, options?: { dryRun?: boolean }): Promise<Created>;
  close(): Promise<void>;
}

const CONFIGURATION = "postern";
const OWN_NAMESPACE = "default";
export const SECRET = "postern-webhook";

export async function openWebhookWorld(): Promise<WebhookWorld> {
  const cluster = await startOwnKubernetes();
  const store = await openStore();
  const { client } = await openCluster(cluster.kubeconfigPath, {});
  await applyCrds(cluster);
  const port = await freePort();
  const urlOf = (path: string) => ({ url: `https://127.0.0.1:${port}${path}` });
  const configurations = webhookConfigurations({ name: CONFIGURATION, ownNamespace: OWN_NAMESPACE, client: urlOf });
  const applied = await cluster.kubectl(
    ["apply", "-f", "-"],
    configurations.map((one) => JSON.stringify(one)).join("\n---\n"),
  );
  if (applied.exitCode !== 0) throw new Error(applied.stderr);
  const operators = new Set<Operator>();
  const logger = pino({ level: process.env.TEST_LOG ?? "silent" }, pino.destination(2));

  return {
    cluster,
    client,
    store,
    port,
    startOperator: async ({ port: own = port, lifetimes, restoreMs, certDir, injection, api } = {}) => {
      const operator = await startOperator({
        source: { kind: "kubernetes", kubeconfig: cluster.kubeconfigPath },
        ...(api ?? { apiUrl: store.server.url, keys: { rootKey: () => store.rootKey } }),
        cluster: "main",
        logger,
        admin: { host: "127.0.0.1", port: 0 },
        webhook: {
          host: "127.0.0.1",
          port: own,
          hosts: ["postern-webhook.default.svc", "127.0.0.1"],
          configurationName: CONFIGURATION,
          certificate:
            certDir === undefined
              ? {
                  secretName: SECRET,
                  ...(lifetimes === undefined ? {} : { lifetimes }),
                  ...(restoreMs === undefined ? {} : { restoreMs }),
                }
              : { dir: certDir },
          injection: aConfig(injection),
        },
      });
      operators.add(operator);
      await waitFor(
        "the webhook to be ready",
        async () => operator.webhook !== undefined && operator.webhook.problem() === undefined,
      );
      return {
        ...operator,
        close: async () => {
          operators.delete(operator);
          await operator.close();
        },
      };
    },
    namespace: async (labels = {}) => {
      const name = `t-${randomBytes(5).toString("hex")}`;
      await client.send({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name, labels } } });
      return name;
    },
    policy: async (namespace, name, spec = {}) => {
      const path = `/apis/postern.dev/v1alpha1/namespaces/${namespace}/apikeypolicies`;
      const body = {
        apiVersion: "postern.dev/v1alpha1",
        kind: "ApiKeyPolicy",
        metadata: { name },
        spec: {
          api: { name: `${name}-api` },
          target: { port: "http" },
          selector: { matchLabels: { app: "orders" } },
          ...spec,
        },
      };
      await client.send({ method: "POST", path, body });
    },
    create: async (namespace, pod, { dryRun = true } = {}) => {
      try {
        const path = `/api/v1/namespaces/${namespace}/pods`;
        const query = dryRun ? { dryRun: "All" } : {};
        const created = await client.send<KubeObject>({ method: "POST", path, query, body: pod });
        return { pod: created, message: "" };
      } catch (error) {
        if (!(error instanceof KubeError)) throw error;
        return { message: error.message };
      }
    },
    close: async () => {
      for (const operator of operators) await operator.close();
      await client.close();
      await store.close();
      await cluster.stop();
    },
  };
}

/** Returns a pod that Pod Security `restricted` admits, guarded by its label. */
export const guardedPod = (more: { metadata?: object; spec?: object; app?: object; labels?: object } = {}): AnyPod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    generateName: "orders-7c9-",
    labels: { app: "orders", "postern.dev/guarded": "true", ...more.labels },
    ...more.metadata,
  },
  spec: {
    // The admission plugin that sets the account is disabled, because no controller creates it.
    serviceAccountName: "default",
    securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        name: "app",
        image: "registry.example/orders:1",
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        ports: [{ name: "http", containerPort: 8080 }],
        readinessProbe: { httpGet: { path: "/ready", port: "http" } },
        ...more.app,
      },
    ],
    ...more.spec,
  },
});

export const gateOf = (pod: AnyPod) =>
  pod?.spec.initContainers?.find((one: { name: string }) => one.name === "postern-gate");
