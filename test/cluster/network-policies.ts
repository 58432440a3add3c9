import { readFile } from "node:fs/promises";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { waitFor } from "../harness/wait.ts";
import type { Cluster } from "./cluster.ts";
import { imageOf } from "./installation.ts";
import { pod } from "./sample-app.ts";
import type { Settings } from "./settings.ts";

/*
 * Whether the cluster enforces NetworkPolicies, found out by one that denies. Where the cluster's network plugin does not, an engine that
 * runs beside any plugin is started on every node (policy-engine/main.go). Its program is handed to pods of the image with iptables, because
 * the cluster's registry does not have it.
 */

const ENGINE = {
  name: "policy-engine",
  source: "cluster/policy-engine/main.go",
  sums: "cluster/policy-engine/go.sum",
  modules: ["sigs.k8s.io/kube-network-policies@v0.7.0"],
};
const NAME = "postern-e2e-policy-engine";
const PROBE = "postern-e2e-probe";
const RULE = "-m conntrack --ctstate NEW -j NFQUEUE --queue-num 100 --queue-bypass";

export interface NetworkPolicyEngine {
  /** Who enforces: the cluster itself, or the engine of the suite. */
  readonly by: "cluster" | "engine";
  close(): Promise<void>;
}

/** Throws when neither the cluster nor the engine enforces. */
export async function enforceNetworkPolicies(cluster: Cluster, settings: Settings): Promise<NetworkPolicyEngine> {
  const closeEngine = async () => {
    // Its rule goes with its pod.
    await cluster.run(["delete", "namespace", NAME, "--ignore-not-found", "--timeout=90s"]);
    await cluster.run(["delete", "clusterrole,clusterrolebinding", NAME, "--ignore-not-found"]);
  };
  const image = imageOf(settings, "sidecar", settings.tag);
  try {
    await openProbe(cluster, image);
    if (await isDenied(cluster)) return { by: "cluster", close: async () => undefined };
    console.error(
      "e2e: the cluster's network plugin does not enforce NetworkPolicies; starting an engine on every node",
    );
    await startEngine(cluster, imageOf(settings, "redirect", settings.tag));
    if (await isDenied(cluster)) return { by: "engine", close: closeEngine };
    const { stdout, stderr } = await cluster.run(["-n", NAME, "logs", "-l", `app=${NAME}`, "--tail=20"]);
    throw new Error(`NetworkPolicies are not enforced, and the engine does not change that: ${stdout}${stderr}`);
  } catch (error) {
    await closeEngine();
    throw error;
  } finally {
    await cluster.run(["delete", "namespace", PROBE, "--ignore-not-found", "--wait=false"]);
  }
}

/** Two pods, of which one answers the other until a NetworkPolicy keeps everyone from it. */
async function openProbe(cluster: Cluster, image: string): Promise<void> {
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: PROBE } });
  const serve = "require('node:http').createServer((_, r) => r.end()).listen(3000)";
  const idle = "setInterval(() => {}, 1e6)";
  await cluster.apply(
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "programs", namespace: PROBE }, data: {} },
    pod(PROBE, "server", image, ["node", "-e", serve]),
    pod(PROBE, "client", image, ["node", "-e", idle]),
  );
  await cluster.kubectl(["-n", PROBE, "wait", "pod/server", "pod/client", "--for=condition=Ready", "--timeout=90s"]);
  await waitFor("the probe's server to answer", async () => (await knockAtServer(cluster)) === "200");
  await cluster.apply({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "deny", namespace: PROBE },
    spec: { podSelector: { matchLabels: { app: "server" } }, policyTypes: ["Ingress"] },
  });
}

async function knockAtServer(cluster: Cluster): Promise<string> {
  const server = await cluster.get("pod", "server", PROBE);
  return await knock(cluster, PROBE, `http://${server?.status.podIP}:3000/`);
}

/** An engine needs some seconds to learn of a NetworkPolicy. */
async function isDenied(cluster: Cluster): Promise<boolean> {
  for (let attempt = 0; attempt < 5; attempt++) if ((await knockAtServer(cluster)) !== "200") return true;
  return false;
}

/** Sends a request from the pod `client` of a namespace. Returns the status of the response; `none` without one for two seconds. */
export async function knock(cluster: Cluster, namespace: string, url: string): Promise<string> {
  const script = `fetch(${JSON.stringify(url)}, { signal: AbortSignal.timeout(2_000) }).then((r) => console.log(r.status), () => console.log("none"))`;
  return (await cluster.kubectl(["-n", namespace, "exec", "client", "--", "node", "-e", script])).trim();
}

async function startEngine(cluster: Cluster, image: string): Promise<void> {
  const program = await readFile(await findGoProgram(ENGINE));
  const metadata = { name: NAME, namespace: NAME };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: NAME };
  const rules = [
    { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["list", "watch"] },
    { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list", "watch"] },
  ];
  const script = [
    "trap 'kill $! 2>/dev/null; exit 0' TERM",
    "until [ -x /run/engine/program ]; do sleep 0.2; done",
    "/run/engine/program & wait",
  ].join("\n");
  const rule = { command: ["sh", "-c", `iptables -C FORWARD ${RULE} 2>/dev/null || iptables -I FORWARD ${RULE}`] };
  const undo = { command: ["sh", "-c", `iptables -D FORWARD ${RULE}`] };
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAME } });
  await cluster.apply(
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: NAME }, rules },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: NAME },
      roleRef,
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata,
      spec: {
        selector: { matchLabels: { app: NAME } },
        template: {
          metadata: { labels: { app: NAME } },
          spec: {
            serviceAccountName: NAME,
            hostNetwork: true,
            tolerations: [{ operator: "Exists" }],
            terminationGracePeriodSeconds: 5,
            containers: [
              {
                name: "engine",
                image,
                imagePullPolicy: "IfNotPresent",
                command: ["sh", "-c", script],
                securityContext: { privileged: true },
                lifecycle: { postStart: { exec: rule }, preStop: { exec: undo } },
                volumeMounts: [{ name: "engine", mountPath: "/run/engine" }],
              },
            ],
            volumes: [{ name: "engine", emptyDir: {} }],
          },
        },
      },
    },
  );
  await cluster.kubectl(["-n", NAME, "rollout", "status", `daemonset/${NAME}`, "--timeout=120s"]);
  const into = [
    "sh",
    "-c",
    "cat >/run/engine/new && chmod +x /run/engine/new && mv /run/engine/new /run/engine/program",
  ];
  for (const { metadata: found } of await cluster.list("pods", NAME)) {
    const { code, stderr } = await cluster.run(["-n", NAME, "exec", "-i", found.name, "--", ...into], program);
    if (code !== 0) throw new Error(`the engine cannot be handed to ${found.name}: ${stderr}`);
  }
}
