import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { parse, stringify } from "yaml";
import { type ApiServer, start } from "../../api-server/start.ts";
import type { Condition } from "../../core/manifests/conditions.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import { resourceOf } from "../../core/manifests/manager.ts";
import { createMemoryEdge } from "../../edge/open.ts";
import { type Operator, type OperatorConfig, startOperator } from "../../operator/start.ts";
import { createTestNamespace, startKubernetes, type TestKubernetes } from "../harness/kubernetes.ts";
import { type KubernetesObjects, type ObjectName, openObjects } from "../harness/kubernetes-objects.ts";
import { freePort } from "../harness/ports.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

export { resourceOf };

/*
 * An api-server with its own database and an operator on a directory or on a real Kubernetes API. Both run the same scenario, so manifests
 * are written and read back by the same code.
 */

export interface TestManifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly annotations?: Record<string, string>;
  };
  readonly spec: Record<string, unknown>;
}

export interface Status {
  readonly conditions?: readonly Condition[];
  readonly observedGeneration?: number;
  readonly [field: string]: unknown;
}

export interface HttpResponse {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly data: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly error: any;
}

export interface ManagedKey {
  readonly keyId: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Unix ms; absent for a key that does not expire. */
  readonly expires?: number;
}

export interface Store {
  readonly server: ApiServer;
  readonly databaseUrl: string;
  readonly rootKey: string;
  /** Sends `POST /v2/<procedure>` and returns status and body. */
  call(procedure: string, body: unknown, headers?: Record<string, string>): Promise<HttpResponse>;
  /** Starts another `server` on the same database and port after it was closed. Returns a function that closes it. */
  reopen(port: number): Promise<() => Promise<void>>;
  /** Runs SQL for effects that no procedure has, such as passing time. */
  sql(text: string, values: unknown[]): Promise<void>;
  /** Returns the keys of a manager that are not revoked, the newest first. */
  keysOf(manager: string): Promise<ManagedKey[]>;
  close(): Promise<void>;
}

export interface World extends Store {
  /** Namespace of the manifests, and another one. */
  readonly namespace: string;
  readonly other: string;
  readonly operator: Operator;
  apply(manifest: TestManifest): Promise<void>;
  remove(manifest: Pick<TestManifest, "kind" | "metadata">): Promise<void>;
  /** Returns `undefined` if the object does not exist, and `{}` if it has no status yet. */
  status(manifest: Pick<TestManifest, "kind" | "metadata">): Promise<Status | undefined>;
}

const ROOT_KEY = "root_of_the_operator_tests_0123456789";
const silent = () => pino({ level: process.env.TEST_LOG ?? "silent" }, pino.destination(2));

export async function openStore(): Promise<Store> {
  const database = await createTestDatabase();
  const edge = createMemoryEdge();
  const serve = (port: number) =>
    start({ databaseUrl: database.url, edge, host: "127.0.0.1", port, rootKey: ROOT_KEY, logger: silent() });
  const server = await serve(0);
  return {
    server,
    databaseUrl: database.url,
    rootKey: ROOT_KEY,
    call: async (procedure, body, headers = {}) => {
      const response = await fetch(`${server.url}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ROOT_KEY}`, "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { data?: unknown; error?: unknown };
      return { status: response.status, data: answer.data, error: answer.error };
    },
    keysOf: async (manager) => {
      const { rows } = await server.deps.db.query<ManagedKey & { expires: number | null }>(
        `select id as "keyId", name, enabled, expires_at as expires
           from keys where manager = $1 and deleted_at is null order by created_at desc, id desc`,
        [manager],
      );
      return rows.map(({ expires, ...key }) => ({ ...key, ...(expires === null ? {} : { expires }) }));
    },
    sql: async (text, values) => {
      const client = new Client({ connectionString: database.url });
      await client.connect();
      await client.query(text, values).finally(() => client.end());
    },
    reopen: async (port) => {
      const again = await serve(port);
      return () => again.close();
    },
    close: async () => {
      await server.close();
      await edge.close();
      await database.drop();
    },
  };
}

export const operatorOf = (
  { server, rootKey }: Pick<Store, "server" | "rootKey">,
  source: OperatorConfig["source"],
  more: Partial<OperatorConfig> = {},
): Promise<Operator> =>
  startOperator({
    source,
    apiUrl: server.url,
    keys: { rootKey: () => rootKey },
    cluster: "test",
    logger: silent(),
    resyncMs: 2_000,
    ...more,
  });

export async function openDirectoryWorld(): Promise<World & { dir: string; stateDir: string }> {
  const root = await mkdtemp(join(tmpdir(), "postern-operator-"));
  const [dir, stateDir] = [join(root, "manifests"), join(root, "state")];
  await mkdir(dir);
  const store = await openStore();
  const operator = await operatorOf(store, { kind: "directory", dir, stateDir });
  const fileOf = ({ kind, metadata: { namespace, name } }: Pick<TestManifest, "kind" | "metadata">) =>
    join(dir, `${kind}-${namespace}-${name}.yaml`);
  return {
    ...store,
    dir,
    stateDir,
    operator,
    namespace: "shop",
    other: "lab",
    apply: (manifest) => writeFile(fileOf(manifest), stringify({ apiVersion: API_VERSION, ...manifest })),
    remove: (manifest) => rm(fileOf(manifest)),
    status: async ({ kind, metadata }) => statusIn(operator, kind, metadata),
    close: async () => {
      await operator.close();
      await store.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export function statusIn(operator: Operator, kind: string, { namespace, name }: { namespace: string; name: string }) {
  const found = operator
    .statuses()
    .find((one) => one.kind === kind && one.namespace === namespace && one.name === name);
  return found === undefined ? undefined : ((found.status ?? {}) as Status);
}

export async function openManifests(kubernetes: Pick<TestKubernetes, "kubeconfigPath">) {
  const objects = await openObjects(kubernetes);
  return {
    ...objects,
    status: async (manifest: Pick<TestManifest, "kind" | "metadata">): Promise<Status | undefined> => {
      const found = await objects.get(manifest);
      return found && ((found.status ?? {}) as Status);
    },
  };
}

export interface KubernetesEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly eventTime: string;
  readonly regarding: { readonly name: string };
}

/** Returns the Events about an object, oldest first. */
export async function eventsOf(
  { objects, namespace }: { readonly objects: KubernetesObjects; readonly namespace: string },
  name: string,
): Promise<readonly KubernetesEvent[]> {
  const events = (await objects.list(
    { apiVersion: "events.k8s.io/v1", kind: "Event" },
    namespace,
  )) as unknown as readonly KubernetesEvent[];
  return events
    .filter(({ regarding }) => regarding.name === name)
    .sort((one, other) => (one.eventTime < other.eventTime ? -1 : 1));
}

export async function openKubernetesWorld(): Promise<
  World & { kubernetes: TestKubernetes; objects: KubernetesObjects }
> {
  const kubernetes = await startKubernetes();
  await applyCrds(kubernetes);
  const [namespace, other] = await Promise.all([createTestNamespace(kubernetes), createTestNamespace(kubernetes)]);
  const store = await openStore();
  const operator = await operatorOf(store, {
    kind: "kubernetes",
    kubeconfig: kubernetes.kubeconfigPath,
    namespaces: [namespace.name, other.name],
  });
  const manifests = await openManifests(kubernetes);
  return {
    ...store,
    kubernetes,
    objects: manifests,
    operator,
    namespace: namespace.name,
    other: other.name,
    apply: async (manifest) => void (await manifests.apply(manifest)),
    remove: manifests.remove,
    status: manifests.status,
    async close(this: World) {
      // A test may have replaced the operator.
      await this.operator.close();
      await store.close();
      await manifests.close();
      await Promise.all([namespace.drop(), other.drop()]);
    },
  };
}

/** `role` alone is that of RBAC, so the group is always given. */
export const toJson = (manifest: TestManifest): string => JSON.stringify({ apiVersion: API_VERSION, ...manifest });

/** Applies the CRDs, each changed by `change`, and waits until the API server serves them. */
export async function applyCrds(
  kubernetes: Pick<TestKubernetes, "kubeconfigPath">,
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into CRDs.
  change: (crd: any) => void = () => undefined,
): Promise<void> {
  const objects = await openObjects(kubernetes);
  try {
    for (const name of await readdir("crds")) {
      const crd = parse(await readFile(join("crds", name), "utf8")) as ObjectName;
      change(crd);
      await objects.apply(crd);
      await waitFor(
        `${crd.metadata.name} to be served`,
        async () => {
          const status = (await objects.get(crd))?.status as Status | undefined;
          return conditionOf(status, "Established")?.status === "True";
        },
        { deadlineMs: 30_000 },
      );
    }
  } finally {
    await objects.close();
  }
}

export const conditionOf = (status: Status | undefined, type: string): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

/** Waits until the Ready condition has this reason and returns the status. */
export async function untilReason(
  world: Pick<World, "status">,
  manifest: Pick<TestManifest, "kind" | "metadata">,
  reason: string,
): Promise<Status> {
  let last: unknown;
  try {
    return await waitFor(`${manifest.kind} ${manifest.metadata.name} to be ${reason}`, async () => {
      const status = await world.status(manifest);
      last = status;
      return conditionOf(status, "Ready")?.reason === reason ? status : undefined;
    });
  } catch (error) {
    throw new Error(`the last status was ${JSON.stringify(last)}`, { cause: error });
  }
}

export const untilDisconnected = (world: Pick<World, "status">, manifest: Pick<TestManifest, "kind" | "metadata">) =>
  waitFor(
    `${manifest.kind} ${manifest.metadata.name} to be gone`,
    async () => (await world.status(manifest)) === undefined,
  );

export interface ElectedOperator extends RunningProcess {
  leads(): Promise<boolean>;
}

/** Starts an operator as a process of its own that takes part in a leader election. `name` is its cluster and its Lease. */
export async function startElectedOperator(options: {
  readonly name: string;
  readonly apiUrl: string;
  readonly rootKey: string;
  readonly kubernetes: TestKubernetes;
  readonly namespace: string;
}): Promise<ElectedOperator> {
  const { name, apiUrl, rootKey, kubernetes, namespace } = options;
  const port = await freePort();
  const args = [
    ...[PROGRAM, "operator", "--api-url", apiUrl, "--kubeconfig", kubernetes.kubeconfigPath],
    ...["--namespaces", namespace, "--cluster", name, "--admin-port", String(port)],
    ...["--leader-election", "--lease-name", name, "--lease-namespace", namespace],
  ];
  const env = { POSTERN_ROOT_KEY: rootKey };
  const running = await startProcess(process.execPath, args, { env, readyLine: /watching/ });
  const leads = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return /^postern_operator_leading 1$/m.test(metrics);
  };
  return { ...running, leads };
}
