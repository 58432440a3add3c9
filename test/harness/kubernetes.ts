import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { partAddress } from "./broker.ts";
import { type KubernetesObjects, openObjects } from "./kubernetes-objects.ts";
import { kubernetesPrograms, LAZY_GC, runKubernetes } from "./parts/kubernetes.ts";

export type KubectlResult = { stdout: string; stderr: string; exitCode: number };

export type TestKubernetes = {
  /** Path of a kubeconfig of a cluster administrator. */
  kubeconfigPath: string;
  /** Runs kubectl as that administrator; a failure is an exit code rather than an exception. `stdin` is for `["apply", "-f", "-"]`. */
  kubectl(args: string[], stdin?: string): Promise<KubectlResult>;
  /** Stops the processes started for this caller only; the shared API server runs until the end of the run. */
  stop(): Promise<void>;
};

/**
 * Starts the Kubernetes API server that all files of a run share. Each file works in its own namespace (`createTestNamespace`).
 * Cluster-wide objects such as CRDs and webhook configurations are visible to all files: apply CRDs as committed, and give webhooks a
 * `namespaceSelector`. On a new machine the first call builds the programs. `make test-all` does that beforehand, so only a direct `vitest
 * run` can exceed a hook timeout.
 */
export async function startKubernetes(): Promise<TestKubernetes> {
  const { kubeconfigPath = "", kubectlPath = "" } = await partAddress("kubernetes");
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), stop: async () => {} };
}

/** Timeout of a hook that calls `startKubernetes`, long enough for a build on a slow machine. */
export const KUBERNETES_START_MS = 1_200_000;

/** Starts a separate API server, for tests that restart it or create cluster-wide objects. */
export async function startOwnKubernetes(): Promise<TestKubernetes & { restartApiServer(): Promise<void> }> {
  const { kubeconfigPath, kubectlPath, ...cluster } = await runKubernetes(await kubernetesPrograms());
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), ...cluster };
}

export type TestNamespace = {
  name: string;
  /** Starts the deletion without waiting, because it never ends without controllers. */
  drop(): Promise<void>;
};

/** Creates a namespace with a random name on the shared or the given API server. */
export async function createTestNamespace(
  on?: Pick<TestKubernetes, "kubeconfigPath">,
  labels: Readonly<Record<string, string>> = {},
): Promise<TestNamespace> {
  const kubernetes = on ?? (await startKubernetes());
  const name = `t-${randomBytes(5).toString("hex")}`;
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
  await withObjects(kubernetes, ({ create }) => create(namespace));
  return {
    name,
    drop: () =>
      withObjects(kubernetes, async ({ get, remove }) => {
        if ((await get(namespace)) !== undefined) await remove(namespace);
      }),
  };
}

async function withObjects<T>(
  kubernetes: Pick<TestKubernetes, "kubeconfigPath">,
  go: (objects: KubernetesObjects) => Promise<T>,
): Promise<T> {
  const objects = await openObjects(kubernetes);
  return await go(objects).finally(objects.close);
}

function kubectlFor(kubeconfigPath: string, kubectlPath: string): TestKubernetes["kubectl"] {
  return async (args, stdin) => {
    const child = spawn(kubectlPath, args, {
      env: { ...process.env, ...LAZY_GC, KUBECONFIG: kubeconfigPath },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const exitCode = new Promise<number>((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`starting ${kubectlPath}`, { cause: error })));
      child.once("close", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
    });
    // kubectl may exit without reading all input; its exit code reports the result.
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin ?? "");
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exitCode]);
    return { stdout, stderr, exitCode: code };
  };
}
