import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { partAddress } from "./broker.ts";
import { kubernetesPrograms, runKubernetes } from "./parts/kubernetes.ts";

export type KubectlResult = { stdout: string; stderr: string; exitCode: number };

export type TestKubernetes = {
  /** A kubeconfig of a cluster administrator. */
  kubeconfigPath: string;
  /** Runs kubectl as that administrator; a failure is an exit code, not an exception. `stdin` suits `["apply", "-f", "-"]`. */
  kubectl(args: string[], stdin?: string): Promise<KubectlResult>;
  /** Ends what was started for this caller alone; the API server that a run shares goes on until the run's end. */
  stop(): Promise<void>;
};

/**
 * The Kubernetes API server that all files of a run share. A file works in a namespace of its own
 * (`createTestNamespace`); what has none, such as a CRD or a webhook configuration, is seen by all the others: apply the
 * former as they are committed, and give the latter a `namespaceSelector`. On a new machine the first call builds the
 * programs; `make test` does that beforehand, so that only a direct `vitest run` meets a hook's time limit then.
 */
export async function startKubernetes(): Promise<TestKubernetes> {
  const { kubeconfigPath = "", kubectlPath = "" } = await partAddress("kubernetes");
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), stop: async () => {} };
}

/** The time limit of a hook that calls `startKubernetes`: enough to build it on a slow machine. */
export const KUBERNETES_START_MS = 1_200_000;

/** An API server of one's own, for tests that restart it or hold cluster-wide objects that others must not see. */
export async function startOwnKubernetes(): Promise<TestKubernetes & { restartApiServer(): Promise<void> }> {
  const { kubeconfigPath, kubectlPath, ...cluster } = await runKubernetes(await kubernetesPrograms());
  return { kubeconfigPath, kubectl: kubectlFor(kubeconfigPath, kubectlPath), ...cluster };
}

export type TestNamespace = {
  name: string;
  /** Begins its deletion, and does not wait for it: without controllers it would never end. */
  drop(): Promise<void>;
};

/** A namespace of one's own, with a random name, on the shared API server or on the one given. */
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
    // kubectl may end without reading all of it; its exit code tells what happened.
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin ?? "");
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exitCode]);
    return { stdout, stderr, exitCode: code };
  };
}
