import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { API_VERSION } from "../../../core/manifests/index.ts";
import { applyCrds, openStore } from "../../e2e/operator-world.ts";
import { openLine } from "../../faults/line.ts";
import { createTestNamespace, startKubernetes } from "../../harness/kubernetes.ts";
import { freePort } from "../../harness/ports.ts";
import { type RunningProcess, startProcess } from "../../harness/process.ts";
import { waitFor } from "../../harness/wait.ts";
import { cpuMicros, peakResidentMb } from "../measure.ts";
import { openMemoryBound } from "../memory-bound.ts";

/*
 * An operator as a process of its own, with the memory of a pod, on a real Kubernetes API: many objects are applied at once, some of
 * which the store refuses.
 */

/** The memory limit of the operator's pod. */
export const POD_MEMORY_BYTES = 128 * 1024 * 1024;

export interface ManyObjects {
  /** Roles that are to become Ready. */
  readonly good: number;
  /** Roles that ask for a name that another one has. */
  readonly bad: number;
  /** Bytes that the process may use; no bound when left out. */
  readonly memoryBytes?: number;
  /** The program and its first arguments; the sources when left out. */
  readonly program?: readonly string[];
  readonly deadlineMs: number;
}

export interface Figures {
  readonly good: number;
  readonly bad: number;
  /** From the end of `kubectl apply` until the last object had its condition. */
  readonly readyMs: number;
  readonly applyMs: number;
  /** Connections to the Kubernetes API, each of which is one TLS handshake. */
  readonly connections: number;
  readonly connectionsMax: number;
  /** CPU time of the operator since its start. */
  readonly cpuMs: number;
  /** The peak of the process, in MB. */
  readonly residentMb: number;
  /** The peak that the bound was charged; undefined where none could be set. */
  readonly chargedMb: number | undefined;
}

const EXIT = new Error("the operator exited");

export async function applyManyObjects({ good, bad, memoryBytes, program, deadlineMs }: ManyObjects): Promise<Figures> {
  const closers: Array<() => Promise<unknown>> = [];
  try {
    const kubernetes = await startKubernetes();
    await applyCrds(kubernetes);
    const namespace = await createTestNamespace(kubernetes);
    closers.push(() => namespace.drop());
    const store = await openStore();
    closers.push(() => store.close());
    const dir = await mkdtemp(join(tmpdir(), "postern-many-"));
    closers.push(() => rm(dir, { recursive: true }));
    const config = parse(await readFile(kubernetes.kubeconfigPath, "utf8")) as {
      clusters: Array<{ cluster: { server: string } }>;
    };
    const cluster = config.clusters[0]?.cluster;
    if (cluster === undefined) throw new Error("the kubeconfig has no cluster");
    const line = await openLine(cluster.server);
    closers.push(() => line.close());
    cluster.server = line.url;
    const kubeconfig = join(dir, "kubeconfig");
    await writeFile(kubeconfig, stringify(config));

    const bound = memoryBytes === undefined ? undefined : await openMemoryBound(memoryBytes);
    if (bound !== undefined) closers.push(() => bound.close());
    const adminPort = await freePort();
    const [command = process.execPath, ...first] = program ?? [process.execPath, "cli/main.ts"];
    const args = [
      ...[...first, "operator", "--api-url", store.server.url, "--kubeconfig", kubeconfig],
      ...["--namespaces", namespace.name, "--cluster", "many", "--admin-port", String(adminPort)],
    ];
    const started = bound === undefined ? { command, args } : bound.within(command, args);
    const operator: RunningProcess = await startProcess(started.command, started.args, {
      env: { POSTERN_ROOT_KEY: store.rootKey },
      readyLine: /watching/,
    });
    closers.push(() => operator.stop());
    let exited = false;
    void operator.exited.then(() => {
      exited = true;
    });

    const role = (name: string, inStore: string) => ({
      apiVersion: API_VERSION,
      kind: "Role",
      metadata: { name, namespace: namespace.name },
      spec: { name: inStore, permissions: [`${inStore}.read`, `${inStore}.write`] },
    });
    const unique = randomBytes(3).toString("hex");
    const manifests = Array.from({ length: good }, (_, i) => role(`good-${i}`, `${unique}-${i}`));
    // Later than the objects that they rival, and among them in the order of the work.
    const competitors = Array.from({ length: bad }, (_, i) =>
      role(`bad-${i}`, `${unique}-${Math.floor((i * good) / bad)}`),
    );
    const startedAt = performance.now();
    for (const items of [manifests, competitors]) {
      if (items.length === 0) continue;
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      const { exitCode, stderr } = await kubernetes.kubectl(["create", "-f", "-"], list);
      if (exitCode !== 0) throw new Error(stderr.slice(0, 2_000));
    }
    const appliedAt = performance.now();
    await waitFor(
      `${good} objects to be Ready and ${bad} to be Stalled`,
      async () => {
        if (exited) return EXIT;
        const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
        const count = (ready: string) =>
          Number(new RegExp(`objects\\{kind="Role",ready="${ready}"\\} (\\d+)`).exec(metrics)?.[1]);
        return count("True") === good && count("False") === bad;
      },
      { deadlineMs, everyMs: 100 },
    ).then((response) => {
      if (response === EXIT) throw new Error(`the operator exited: ${operator.stderr().slice(-2_000)}`);
    });
    const readyAt = performance.now();
    return {
      good,
      bad,
      readyMs: Math.round(readyAt - appliedAt),
      applyMs: Math.round(appliedAt - startedAt),
      connections: line.opened,
      connectionsMax: line.openMax,
      cpuMs: Math.round(cpuMicros(operator.pid) / 1_000),
      residentMb: peakResidentMb(operator.pid),
      chargedMb: bound === undefined ? undefined : (await bound.peakBytes()) / 1_000_000,
    };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
