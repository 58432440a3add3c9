import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { partAddress } from "./broker.ts";
import { kubernetesPrograms, runKubernetes } from "./parts/kubernetes.ts";

export type KubectlResult = { stdout: string; stderr: string; exitCode: number };

export type TestKubernetes = {
  /** A kubeconfig of a cluster administrator. */
  kubeconfigPath: string;
  /** Runs kubectl as that administrator; a failure is an exit code, not an exception. `stdin` is for `["apply", "-f", "-"]`. */
  kubectl(args: string[], stdin?: string): Promise<KubectlResult>;
  /** Stops only what was started for this caller; the shared API server runs until the end of the run. */
  stop(): Promise<void>;
};

/**
 * Starts the Kubernetes API server that all files of a run share. A file works in its own namespace
 * (`createTestNamespace`). All files see objects without a namespace, such as a CRD or a webhook configuration: apply CRDs as they
 * are committed, and give webhooks a `namespaceSelector`. On a new machine the first call builds the
 * programs; `make test-all` does that beforehand, so only a direct `vitest run` can exceed a hook's time limit.
 */
export async function startKubernetes(): Promise<TestKubernetes> {
  const { kubeconfigPath = "", kubectlPath = "" } = await partAddress("kubernetes");
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), stop: async () => {} };
}

/** The time limit of a hook that calls `startKubernetes`: enough to build it on a slow machine. */
export const KUBERNETES_START_MS = 1_200_000;

/** Starts a separate API server, for tests that restart it or need cluster-wide objects that others must not see. */
export async function startOwnKubernetes(): Promise<TestKubernetes & { restartApiServer(): Promise<void> }> {
  const { kubeconfigPath, kubectlPath, ...cluster } = await runKubernetes(await kubernetesPrograms());
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), ...cluster };
}

export type TestNamespace = {
  name: string;
  /** Starts its deletion without waiting: without controllers the deletion would never end. */
  drop(): Promise<void>;
};

/** Creates a namespace with a random name, on the shared API server or on the given one. */
export async function createTestNamespace(on?: Pick<TestKubernetes, "kubectl">): Promise<TestNamespace> {
  const { kubectl } = on ?? (await startKubernetes());
  const name = `t-${randomBytes(5).toString("hex")}`;
  const created = await kubectl(["create", "namespace", name]);
  if (created.exitCode !== 0) throw new Error(`creating the namespace ${name}: ${created.stderr.trim()}`);
  return {
    name,
    drop: async () => void (await kubectl(["delete", "namespace", name, "--wait=false", "--ignore-not-found"])),
  };
}

function kubectlFor(kubeconfigPath: string, kubectlPath: string): TestKubernetes["kubectl"] {
  return async (args, stdin) => {
    const child = spawn(kubectlPath, args, {
      env: { ...process.env, KUBECONFIG: kubeconfigPath },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const exitCode = new Promise<number>((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`starting ${kubectlPath}`, { cause: error })));
      child.once("close", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
    });
    // kubectl may exit without reading all of it; its exit code says what happened.
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin ?? "");
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exitCode]);
    return { stdout, stderr, exitCode: code };
  };
}
