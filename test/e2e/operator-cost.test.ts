import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KINDS, type Kind } from "../../core/manifests/index.ts";
import { type ApiClient, createStoreApi } from "../../operator/api/client.ts";
import { createPolicyCache } from "../../operator/reconcilers/api-key-policy/policy-cache.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import { createSyncedObjects } from "../../operator/reconcilers/drift/synced-objects.ts";
import { INDEXES } from "../../operator/reconcilers/indexes.ts";
import { RECONCILERS } from "../../operator/reconcilers/registry.ts";
import { createSyncTimes } from "../../operator/reconcilers/sync-times.ts";
import type { ManifestChange, ManifestObject, ManifestSource } from "../../operator/source/contract.ts";
import { indexSource } from "../../operator/source/indexed.ts";
import { anObject } from "../../operator/test/builders.ts";
import { conditionOf, openStore, type Status, type Store } from "./operator-world.ts";
import { oneWorkspace, openReconcilerWorld } from "./reconciler-world.ts";

/*
 * Number of objects that a reconcile reads, and that the search for affected objects reads: equal for 80 and 20 objects of each kind. Times
 * would not distinguish 20 from 80.
 */

let store: Store;
beforeAll(async () => {
  store = await openStore();
});
afterAll(() => store?.close());

/** Four objects of each kind per Kubernetes namespace; each refers to those of its own number. */
const SPECS: Readonly<Record<Kind, (i: number, unique: string) => object>> = {
  Role: (i, unique) => ({ name: `${unique}-r${i}`, permissions: ["a.read"] }),
  RatelimitNamespace: (i, unique) => ({ name: `${unique}-n${i}` }),
  RatelimitOverride: (i) => ({ namespaceRef: { name: `it-${i}` }, identifier: `i${i}`, limit: 1, duration: "1s" }),
  ApiKeyPolicy: (i, unique) => ({
    selector: { matchLabels: { app: `app-${i}` } },
    api: { name: `${unique}-p${i}` },
    target: { port: 80 },
    rules: [{ ratelimits: [{ namespace: `${unique}-n${i}`, identifier: "Key", limit: 9, duration: "1h" }] }],
  }),
  ApiKey: (i, unique) => ({
    policyRef: { name: `it-${i}` },
    roles: [`${unique}-r${i}`],
    secretRef: { name: `key-${i}` },
  }),
};
/** Referenced kinds come first. */
const ORDER: readonly Kind[] = ["Role", "RatelimitNamespace", "RatelimitOverride", "ApiKeyPolicy", "ApiKey"];

/** Returns the object and adds it to a set when any part is read. */
function noticing(object: ManifestObject, looked: Set<string>): ManifestObject {
  const id = `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`;
  const read = <T>(value: T): T => {
    looked.add(id);
    return value;
  };
  return {
    kind: object.kind,
    get metadata() {
      return read(object.metadata);
    },
    get spec() {
      return read(object.spec);
    },
    get status() {
      return read(object.status);
    },
  };
}

/** Returns an in-memory cluster of the objects; the api-server is real. */
function openCluster(objects: readonly ManifestObject[], looked: Set<string>) {
  const held = new Map<string, ManifestObject>();
  const idOf = (kind: Kind, { namespace, name }: { namespace: string; name: string }) => `${kind} ${namespace}/${name}`;
  let report: (change: ManifestChange) => void = () => undefined;
  const changes: ManifestChange[] = [];
  const put = (id: string, after: ManifestObject) => {
    const before = held.get(id);
    held.set(id, after);
    report({ kind: after.kind, after, ...(before === undefined ? {} : { before }) });
  };
  const change = async ({ kind, metadata }: ManifestObject, to: Partial<ManifestObject>) => {
    const id = idOf(kind, metadata);
    const { kind: _, ...object } = { ...(held.get(id) as ManifestObject) };
    put(id, noticing({ kind, ...object, ...to }, looked));
  };
  const written = new Map<string, string>();
  const secrets: ManifestSource["secrets"] = {
    find: async (_, name) =>
      written.has(name) ? { state: "ours", keyId: written.get(name), version: "1" } : { state: "absent" },
    write: async (_, { name, keyId }) => {
      written.set(name, keyId);
      return undefined;
    },
    check: async () => undefined,
    areCollected: true,
    remove: async () => undefined,
  };
  const source = indexSource(
    {
      start: async (onChange) => {
        report = onChange;
        for (const object of objects) put(idOf(object.kind, object.metadata), noticing(object, looked));
      },
      get: (kind, key) => held.get(idOf(kind, key)),
      list: (kind) => [...held.values()].filter((object) => object.kind === kind),
      updateStatus: (object, status) => change(object, { status }),
      setFinalizers: (object, finalizers) => change(object, { metadata: { ...object.metadata, finalizers } }),
      recordEvent: async () => undefined,
      secrets,
      close: async () => undefined,
    },
    INDEXES,
  );
  return { source, start: () => source.start((one) => changes.push(one)), changes };
}

/** Returns for each kind the number of objects that its reconcile reads, and the resulting change. */
async function polledAt(count: number): Promise<Record<string, number>> {
  const unique = `of${count}`;
  const looked = new Set<string>();
  const objects = KINDS.flatMap(({ kind }) =>
    Array.from({ length: count }, (_, i) =>
      anObject(kind, SPECS[kind](i, unique), {
        name: `it-${i}`,
        namespace: `ns-${unique}-${Math.floor(i / 4)}`,
        uid: `${kind}-${i}`,
        finalizers: [],
      }),
    ),
  );
  const { source, start, changes } = openCluster(objects, looked);
  await start();
  const ctx: OperatorContext = {
    source,
    workspaces: oneWorkspace(createStoreApi({ url: store.server.url, rootKey: () => store.rootKey })),
    cluster: unique,
    policyCache: createPolicyCache(),
    synced: createSyncedObjects(300_000),
    syncs: createSyncTimes(),
    pods: { in: () => [] },
    network: undefined,
    term: () => ({ fence: undefined, signal: new AbortController().signal }),
    onStaleFence: () => undefined,
    resyncMs: 300_000,
    nowMs: Date.now,
    log: pino({ level: "silent" }),
  };
  const figures: Record<string, number> = {};
  for (const kind of ORDER) {
    const reconciler = RECONCILERS.find((one) => one.kind === kind);
    const key = { namespace: `ns-${unique}-1`, name: "it-5" };
    looked.clear();
    changes.length = 0;
    await reconciler?.reconcile(key, ctx);
    figures[`${kind}, reconciled`] = looked.size;
    const status = source.get(kind, key)?.status as Status;
    expect(conditionOf(status, "Accepted") ?? conditionOf(status, "Ready"), JSON.stringify(status)).toMatchObject({
      status: "True",
    });
    const after = source.get(kind, key) as ManifestObject;
    const made = [...changes, { kind, after }, { kind, before: after }];
    looked.clear();
    for (const change of made) for (const { concernedBy } of RECONCILERS) concernedBy(change, source);
    figures[`${kind}, changed`] = looked.size;
  }
  return figures;
}

test("operator work per object is independent of the number of objects", async () => {
  const few = await polledAt(20);
  expect(await polledAt(80)).toEqual(few);
  expect(Math.max(...Object.values(few)), JSON.stringify(few)).toBeLessThanOrEqual(8);
}, 60_000);

test("new role with 50 permissions, and a policy with a changed limit, cost one call each", async () => {
  const world = await openReconcilerWorld();
  try {
    const calls: string[] = [];
    const api: ApiClient = {
      call: (procedure, ...rest) => {
        calls.push(procedure);
        return world.api.call(procedure, ...rest);
      },
    };
    const ctx = { ...world.ctx, workspaces: oneWorkspace(api) };
    const metadata = { name: "it", namespace: "shop" };
    const permissions = Array.from({ length: 50 }, (_, i) => `orders.${i}`);
    const role = { kind: "Role", metadata, spec: { name: "editor", permissions } };
    const policy = (limit: number) => ({
      kind: "ApiKeyPolicy",
      metadata,
      spec: {
        api: { name: "orders" },
        target: { port: 80 },
        rules: [{ ratelimits: [{ name: "burst", limit, duration: "1m" }] }],
      },
    });
    for (const one of [role, policy(10), policy(20)]) {
      calls.length = 0;
      await world.apply(one);
      await world.work(one, ctx);
      expect(conditionOf(world.statusIn(one), "Ready"), JSON.stringify(world.statusIn(one))).toMatchObject({
        status: "True",
        observedGeneration: world.objectOf(one)?.metadata.generation,
      });
      expect(calls).toEqual(["managed.applyObject"]);
    }
  } finally {
    await world.close();
  }
});
