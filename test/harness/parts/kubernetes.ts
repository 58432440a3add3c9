import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { freePort } from "../ports.ts";
import { type RunningProcess, startProcess } from "../process.ts";
import { waitFor } from "../wait.ts";
import { dockerAnswers, findBinary, findPart } from "./find.ts";
import { buildKubernetes, builtKubernetes } from "./kubernetes-build.ts";

/** Paths of the programs; kubectl may be in another folder than the servers. */
export type Programs = { apiServer: string; etcd: string; kubectl: string };

export type Cluster = { kubeconfigPath: string; kubectlPath: string; stop(): Promise<void> };

const ADVICE =
  "install Go 1.24 or newer, or python3 with venv, so that it can be built, or start Docker, or set KUBEBUILDER_ASSETS or TEST_KUBECONFIG";

/** Finds or starts the Kubernetes API that the files of a run share, each in its own namespace. */
export async function startKubernetesPart() {
  const { kubeconfigPath, kubectlPath, stop } = await findPart<Cluster>("A Kubernetes API server", ADVICE, [
    { name: "TEST_KUBECONFIG", attempt: fromEnvironment },
    { name: "KUBEBUILDER_ASSETS", attempt: async () => await start(await programsIn(process.env.KUBEBUILDER_ASSETS)) },
    { name: "the PATH", attempt: async () => await start(await programsIn(process.env.PATH)) },
    { name: "the cache", attempt: async () => await start(await programsIn(await builtKubernetes())) },
    { name: "container k3s", attempt: fromContainer },
    { name: "Go build", attempt: async () => await start(await programsIn(await buildKubernetes())) },
  ]);
  return { address: { kubeconfigPath, kubectlPath }, stop };
}

/** Whether `startKubernetesPart` needs no build. */
export async function canStartKubernetes(): Promise<boolean> {
  if (process.env.TEST_KUBECONFIG) return true;
  for (const path of [process.env.KUBEBUILDER_ASSETS, process.env.PATH, await builtKubernetes()]) {
    if (path && (await findBinary(["kube-apiserver"], path)) && (await findBinary(["etcd"], path))) return true;
  }
  return dockerAnswers();
}

/** Finds the programs for a separate API server in the order above, without existing clusters. */
export async function kubernetesPrograms(): Promise<Programs> {
  return await findPart<Programs>("kube-apiserver with etcd", ADVICE, [
    { name: "KUBEBUILDER_ASSETS", attempt: () => programsIn(process.env.KUBEBUILDER_ASSETS) },
    { name: "the PATH", attempt: () => programsIn(process.env.PATH) },
    { name: "Go build", attempt: async () => await programsIn((await builtKubernetes()) ?? (await buildKubernetes())) },
  ]);
}

/** Returns the programs when both servers are in one of the folders of `path`, otherwise `undefined`. */
async function programsIn(path: string | undefined): Promise<Programs | undefined> {
  if (!path) return undefined;
  const [apiServer, etcd] = await Promise.all([findBinary(["kube-apiserver"], path), findBinary(["etcd"], path)]);
  if (apiServer === undefined || etcd === undefined) return undefined;
  return { apiServer, etcd, kubectl: (await findBinary(["kubectl"], path)) ?? (await findKubectl()) };
}

/** Returns the path of kubectl from the PATH or of a built one. */
export async function findKubectl(): Promise<string> {
  const built = async (folder: string | undefined) => (folder === undefined ? undefined : join(folder, "kubectl"));
  return (
    (await findBinary(["kubectl"])) ??
    (await built(await builtKubernetes())) ??
    join(await buildKubernetes(), "kubectl")
  );
}

async function fromEnvironment(): Promise<Cluster | undefined> {
  const kubeconfigPath = process.env.TEST_KUBECONFIG;
  if (!kubeconfigPath) return undefined;
  await readFile(kubeconfigPath);
  return { kubeconfigPath, kubectlPath: await findKubectl(), stop: async () => {} };
}

async function fromContainer(): Promise<Cluster | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { K3sContainer } = await import("@testcontainers/k3s");
  const container = await new K3sContainer("rancher/k3s:v1.34.2-k3s1").start();
  const dir = await mkdtemp(join(tmpdir(), "postern-kubernetes-"));
  const kubeconfigPath = join(dir, "kubeconfig");
  await writeFile(kubeconfigPath, container.getKubeConfig(), { mode: 0o600 });
  const stop = async () => {
    await container.stop();
    await rm(dir, { recursive: true, force: true });
  };
  return { kubeconfigPath, kubectlPath: await findKubectl(), stop };
}

async function start(programs: Programs | undefined): Promise<Cluster | undefined> {
  return programs === undefined ? undefined : await runKubernetes(programs);
}

/**
 * Starts etcd and a kube-apiserver; ready in 2 to 5 s with 300 MB. It has no nodes and no controllers: pods never run, a deleted namespace
 * stays `Terminating`, and owner references are not garbage-collected.
 */
export async function runKubernetes(programs: Programs): Promise<Cluster & { restartApiServer(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), "postern-kubernetes-"));
  const started: RunningProcess[] = [];
  const stop = async () => {
    // The state is discarded, so open watches need not end first.
    for (const server of started) server.kill("SIGKILL");
    await Promise.all(started.map((server) => server.exited));
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const etcdUrl = await startEtcd(programs.etcd, dir, started);
    const token = randomBytes(16).toString("hex");
    const port = await freePort();
    const startApiServer = async () => {
      const server = await startProcess(programs.apiServer, apiServerArguments({ etcdUrl, dir, port }), {
        env: LAZY_GC,
      });
      started.push(server);
      await apiServerIsReady({ server, dir, port, token });
      return server;
    };
    await writeFile(join(dir, "tokens.csv"), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
    await writeFile(join(dir, "sa.key"), serviceAccountKey(), { mode: 0o600 });
    let apiServer = await startApiServer();
    const kubeconfigPath = join(dir, "kubeconfig");
    await writeFile(kubeconfigPath, await kubeconfig({ dir, port, token }), { mode: 0o600 });
    return {
      kubeconfigPath,
      kubectlPath: programs.kubectl,
      stop,
      restartApiServer: async () => {
        apiServer.kill("SIGKILL");
        await apiServer.exited;
        apiServer = await startApiServer();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Collects garbage less often: a start of a server or of kubectl takes a fifth less CPU time. A server takes 130 MB more memory. */
export const LAZY_GC = { GOGC: "400" };

async function startEtcd(etcd: string, dir: string, started: RunningProcess[]): Promise<string> {
  const client = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  const flags = {
    "data-dir": join(dir, "etcd"),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
  };
  const all = [...asFlags(flags), "--unsafe-no-fsync"];
  started.push(await startProcess(etcd, all, { env: LAZY_GC, readyLine: /ready to serve client requests/ }));
  return client;
}

function apiServerArguments({ etcdUrl, dir, port }: { etcdUrl: string; dir: string; port: number }): string[] {
  return asFlags({
    "etcd-servers": etcdUrl,
    "bind-address": "127.0.0.1",
    "secure-port": String(port),
    "cert-dir": join(dir, "certificates"),
    "token-auth-file": join(dir, "tokens.csv"),
    "authorization-mode": "RBAC",
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-account-key-file": join(dir, "sa.key"),
    "service-account-signing-key-file": join(dir, "sa.key"),
    "service-cluster-ip-range": "10.96.0.0/16",
    // Without a controller that creates default service accounts, this plugin would reject every pod.
    "disable-admission-plugins": "ServiceAccount",
    // Creating the objects of this feature takes a quarter of the CPU time of a start.
    "enable-priority-and-fairness": "false",
  });
}

const asFlags = (flags: Record<string, string>) => Object.entries(flags).map(([name, value]) => `--${name}=${value}`);

function serviceAccountKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "sec1", format: "pem" }) as string;
}

/** The API server signs its own certificate and writes the CA certificate into the same file. */
const certificate = (dir: string) => readFile(join(dir, "certificates", "apiserver.crt"), "utf8");

type Access = { dir: string; port: number; token: string };

async function apiServerIsReady({ server, dir, port, token }: Access & { server: RunningProcess }): Promise<void> {
  const exit = server.exited.then(({ code }) => {
    throw new Error(`kube-apiserver ended too early (code ${code}):\n${server.stderr().slice(-2_000)}`);
  });
  exit.catch(() => undefined);
  const ready = waitFor("kube-apiserver to be ready", async () => await readyz({ dir, port, token }), {
    deadlineMs: 60_000,
    everyMs: 100,
  });
  await Promise.race([ready, exit]);
  // A rejection that is not awaited is irrelevant.
  ready.catch(() => undefined);
}

async function readyz({ dir, port, token }: Access): Promise<boolean> {
  const ca = await certificate(dir);
  const headers = { authorization: `Bearer ${token}` };
  return await new Promise<boolean>((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/readyz", ca, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).once("error", reject);
  });
}

async function kubeconfig({ dir, port, token }: Access): Promise<string> {
  const ca = Buffer.from(await certificate(dir)).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: `https://127.0.0.1:${port}`, "certificate-authority-data": ca } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin", namespace: "default" } }],
    "current-context": "test",
  });
}
