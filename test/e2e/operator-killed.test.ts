import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  startOwnKubernetes,
} from "../harness/kubernetes.ts";
import { type KubernetesObjects, openObjects } from "../harness/kubernetes-objects.ts";
import type { RunningProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";
import {
  applyCrds,
  openStore,
  operatorOf,
  type Store,
  startElectedOperator,
  type TestManifest,
} from "./operator-world.ts";

/* Crashes during work: of the leader process and of the Kubernetes API server. */

const LONG = { deadlineMs: 120_000, everyMs: 200 };
const POLICIES = 40;
const PODS_NONE = { matchLabels: { app: "none" } };

let store: Store;
beforeAll(async () => {
  store = await openStore();
});
afterAll(() => store?.close());

/** A policy creates two stored objects in sequence, and API names need not be unique. */
const policy = (name: string, namespace: string, port = 80): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace },
  spec: { selector: PODS_NONE, api: { name: `${namespace}-${name}` }, target: { port } },
});
const policies = (namespace: string) => Array.from({ length: POLICIES }, (_, i) => policy(`p${i}`, namespace));

/** Returns one object of each other kind with content `n`. */
const others = (namespace: string, name: string, n: number): TestManifest[] => {
  const metadata = { name, namespace };
  return [
    { kind: "Role", metadata, spec: { name, description: `Has ${n}.`, permissions: ["orders.read"] } },
    { kind: "RatelimitNamespace", metadata, spec: { name, allowedNamespaces: Array(n).fill("bank").slice(1) } },
    {
      kind: "RatelimitOverride",
      metadata,
      spec: { namespaceRef: { name }, identifier: "acme", limit: n, duration: "1m" },
    },
    {
      kind: "ApiKey",
      metadata,
      spec: { policyRef: { name: "p2" }, owner: `owner-${n}`, secretRef: { name: `${name}-key` } },
    },
  ];
};

async function applyAll({ apply }: KubernetesObjects, manifests: readonly TestManifest[]): Promise<void> {
  await Promise.all(manifests.map(apply));
}

interface Found {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly status?: {
    readonly apiId?: string;
    readonly observedGeneration?: number;
    readonly conditions?: ReadonlyArray<{ readonly type: string; readonly status: string }>;
  };
}

const find = async ({ list }: KubernetesObjects, namespace: string, kind = "ApiKeyPolicy") =>
  (await list({ kind }, namespace)) as unknown as readonly Found[];

const isReady = ({ metadata, status }: Found): boolean =>
  status?.observedGeneration === metadata.generation &&
  status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;

/** Returns the ids of live stored APIs of these policies. */
async function apisOf(namespace: string): Promise<string[]> {
  const text = "select id from apis where deleted_at is null and name like $1";
  const { rows } = await store.server.deps.db.query<{ id: string }>(text, [`${namespace}-%`]);
  return rows.map(({ id }) => id).sort();
}

const idsIn = (found: readonly Found[]): string[] => found.map(({ status }) => status?.apiId ?? "none").sort();

test(
  "new leader completes the work of a killed leader without duplicates",
  async () => {
    const kubernetes = await startKubernetes();
    await applyCrds(kubernetes);
    const { name: namespace, drop } = await createTestNamespace(kubernetes);
    const objects = await openObjects(kubernetes);
    const started: RunningProcess[] = [];
    const start = async () => {
      const { rootKey } = store;
      const operator = await startElectedOperator({
        name: "killed",
        apiUrl: store.server.url,
        rootKey,
        kubernetes,
        namespace,
      });
      started.push(operator);
      return operator;
    };
    try {
      const leader = await start();
      await waitFor("the first to lead", leader.leads, LONG);
      const follower = await start();
      await applyAll(objects, policies(namespace));
      // Polls the api-server, which is faster than the Kubernetes API.
      await waitFor("it to be amid its work", async () => (await apisOf(namespace)).length >= 5, {
        deadlineMs: 60_000,
        everyMs: 5,
      });
      leader.kill("SIGKILL");
      await leader.exited;
      expect((await find(objects, namespace)).filter(isReady).length).toBeLessThan(POLICIES);
      await waitFor("the other to lead", follower.leads, LONG);
      await waitFor("all to be Ready", async () => (await find(objects, namespace)).every(isReady), LONG);
      const found = await find(objects, namespace);
      expect(found).toHaveLength(POLICIES);
      expect(await apisOf(namespace)).toEqual(idsIn(found));
    } finally {
      await Promise.all(started.map((one) => one.stop()));
      await objects.close();
      await drop();
    }
  },
  KUBERNETES_START_MS,
);

test(
  "crash of the Kubernetes API server loses no later change, addition or deletion",
  async () => {
    const kubernetes = await startOwnKubernetes();
    const namespace = "default";
    const objects = await openObjects(kubernetes);
    try {
      await applyCrds(kubernetes);
      const operator = await operatorOf(
        store,
        { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath },
        { cluster: "restarted", resyncMs: 600_000, admin: { host: "127.0.0.1", port: 0 } },
      );
      try {
        await applyAll(objects, [...others(namespace, "kept", 1), ...others(namespace, "pruned", 1)]);
        await applyAll(objects, policies(namespace));
        await waitFor("it to be amid its work", async () => (await apisOf(namespace)).length >= 5, {
          deadlineMs: 60_000,
          everyMs: 5,
        });
        await kubernetes.restartApiServer();
        await applyAll(objects, [policy("p0", namespace, 81), policy("added", namespace)]);
        await applyAll(objects, [...others(namespace, "kept", 2), ...others(namespace, "added", 2)]);
        for (const one of others(namespace, "pruned", 1).reverse()) await objects.removeAndWait(one, LONG);
        for (const { kind } of others(namespace, "kept", 2)) {
          await waitFor(
            `each ${kind} to be Ready`,
            async () => {
              const all = await find(objects, namespace, kind);
              return all.map(({ metadata }) => metadata.name).join() === "added,kept" && all.every(isReady);
            },
            LONG,
          );
        }
        const { rows } = await store.server.deps.db.query(
          `select (select description from roles where name = 'kept') as role,
                  (select max_count from ratelimit_overrides where manager like '%/default/kept' and deleted_at is null) as limit,
                  (select count(*) from keys where manager like 'restarted/%' and deleted_at is null) as keys,
                  (select count(*) from ratelimit_overrides where manager like '%/default/pruned' and deleted_at is null) as pruned`,
        );
        expect(rows).toEqual([{ role: "Has 2.", limit: 2, keys: 2, pruned: 0 }]);
        // Before it is Ready, it may have no API yet.
        const isReadyByName = async (name: string) =>
          (await find(objects, namespace)).some((one) => one.metadata.name === name && isReady(one));
        await waitFor("p1 to be Ready", () => isReadyByName("p1"), LONG);
        await objects.removeAndWait(policy("p1", namespace), LONG);
        await waitFor("all to be Ready", async () => (await find(objects, namespace)).every(isReady), LONG);
        const found = await find(objects, namespace);
        expect(found.map(({ metadata }) => metadata.name)).toContain("added");
        expect(found).toHaveLength(POLICIES);
        // The API of the deleted policy stays by its deletionPolicy.
        expect(await apisOf(namespace)).toEqual(expect.arrayContaining(idsIn(found)));
        expect(await apisOf(namespace)).toHaveLength(POLICIES + 1);
        expect((await fetch(`${operator.adminUrl}/readyz`)).status).toBe(200);
      } finally {
        await operator.close();
      }
    } finally {
      await objects.close();
      await kubernetes.stop();
    }
  },
  KUBERNETES_START_MS,
);
