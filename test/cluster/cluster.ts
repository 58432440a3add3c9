import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { findHelm } from "../harness/parts/helm.ts";
import { findKubectl } from "../harness/parts/kubernetes.ts";
import { type WaitOptions, waitFor } from "../harness/wait.ts";
import type { Settings } from "./settings.ts";

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KubeObject {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of any kind.
  readonly [part: string]: any;
}

/** The real cluster, as its administrator. */
export interface Cluster {
  /** Runs kubectl; a failure is an exit code, not an exception. */
  run(args: readonly string[], stdin?: string | Buffer): Promise<Ran>;
  /** The same; throws what it said when it failed. Returns its output. */
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  helm(args: readonly string[]): Promise<string>;
  apply(...objects: object[]): Promise<void>;
  get(kind: string, name: string, namespace?: string): Promise<KubeObject | undefined>;
  list(kind: string, namespace: string, selector?: string): Promise<readonly KubeObject[]>;
  /** Waits until the object is as wanted, and returns it. */
  until(
    what: string,
    ref: { kind: string; name: string; namespace: string },
    isSo: (object: KubeObject) => boolean,
    options?: WaitOptions,
  ): Promise<KubeObject>;
}

export async function openCluster({ kubeconfig }: Settings): Promise<Cluster> {
  const programs = { kubectl: await findKubectl(), helm: await findHelm() };
  const env = { ...process.env, KUBECONFIG: kubeconfig };

  const start = async (program: string, args: readonly string[], stdin: string | Buffer = ""): Promise<Ran> => {
    const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin);
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { code, stdout, stderr };
  };
  const outputOf = async (program: string, args: readonly string[], stdin?: string): Promise<string> => {
    const { code, stdout, stderr } = await start(program, args, stdin);
    if (code !== 0) throw new Error(`${args.slice(0, 4).join(" ")}: ${stderr.trim() || stdout.trim()}`);
    return stdout;
  };

  const run: Cluster["run"] = (args, stdin) => start(programs.kubectl, args, stdin);
  const kubectl: Cluster["kubectl"] = (args, stdin) => outputOf(programs.kubectl, args, stdin);
  const inNamespace = (namespace: string | undefined) => (namespace === undefined ? [] : ["-n", namespace]);
  const get: Cluster["get"] = async (kind, name, namespace) => {
    const out = await kubectl(["get", kind, name, ...inNamespace(namespace), "--ignore-not-found", "-o", "json"]);
    return out === "" ? undefined : (JSON.parse(out) as KubeObject);
  };
  return {
    run,
    kubectl,
    helm: (args) => outputOf(programs.helm, args),
    apply: async (...objects) => {
      const items = { apiVersion: "v1", kind: "List", items: objects };
      await kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], JSON.stringify(items));
    },
    get,
    list: async (kind, namespace, selector) => {
      const which = selector === undefined ? [] : ["-l", selector];
      const out = await kubectl(["get", kind, "-n", namespace, ...which, "-o", "json"]);
      return (JSON.parse(out) as { items: KubeObject[] }).items;
    },
    until: (what, { kind, name, namespace }, isSo, options) =>
      waitFor(
        `${kind} ${namespace}/${name} to be ${what}`,
        async () => {
          const object = await get(kind, name, namespace);
          return object !== undefined && isSo(object) ? object : undefined;
        },
        { deadlineMs: 60_000, everyMs: 500, ...options },
      ),
  };
}

/** The status of a condition: `True`, `False`, `Unknown`; undefined when the object does not have it, or has it of an older generation. */
export function conditionOf(object: KubeObject, type: string): string | undefined {
  const conditions = (object.status?.conditions ?? []) as Array<{
    type: string;
    status: string;
    observedGeneration?: number;
  }>;
  const found = conditions.find((condition) => condition.type === type);
  return found?.observedGeneration === object.metadata.generation ? found?.status : undefined;
}
