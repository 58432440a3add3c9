import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { stringify } from "yaml";
import { API_VERSION, type Kind } from "../../core/manifests/index.ts";
import { type ApiClient, createStoreApi } from "../../operator/api/client.ts";
import { createPolicyCache } from "../../operator/reconcilers/api-key-policy/policy-cache.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import { createSyncedObjects } from "../../operator/reconcilers/drift/synced-objects.ts";
import { INDEXES, type ObjectSource } from "../../operator/reconcilers/indexes.ts";
import { RECONCILERS } from "../../operator/reconcilers/registry.ts";
import { createSyncTimes } from "../../operator/reconcilers/sync-times.ts";
import type { WorkResult } from "../../operator/runtime/queue.ts";
import type { ManifestObject } from "../../operator/source/contract.ts";
import { createDirectorySource } from "../../operator/source/directory.ts";
import { indexSource } from "../../operator/source/indexed.ts";
import { waitFor } from "../harness/wait.ts";
import { openStore, type Status, type Store, type TestManifest } from "./operator-world.ts";

/*
 * A real api-server, a real manifest directory and the reconcilers without an operator: the test decides when each object is reconciled and
 * what others write in between.
 */

export type Name = Pick<TestManifest, "kind" | "metadata">;

export interface ReconcilerWorld {
  readonly store: Store;
  readonly source: ObjectSource;
  readonly stateDir: string;
  readonly api: ApiClient;
  readonly ctx: OperatorContext;
  objectOf(one: Name): ManifestObject | undefined;
  statusIn(one: Name): Status;
  /** Writes the manifest and waits until the source has it. */
  apply(one: TestManifest): Promise<void>;
  remove(one: Name): Promise<void>;
  /** Reconciles once; rethrows errors of the reconciler. */
  work(one: Name, ctx?: OperatorContext): Promise<WorkResult>;
  /** Reconciles once and returns the status. A thrown error, which an operator would retry, counts as not done. */
  reconcile(one: Name): Promise<Status>;
  close(): Promise<void>;
}

/** One workspace for all namespaces, as with POSTERN_ROOT_KEY. */
export const oneWorkspace = (api: ApiClient): OperatorContext["workspaces"] => ({
  resolve: () => ({ workspace: { name: undefined, isDefault: true, api } }),
  mayUseName: () => true,
  confirm: async () => undefined,
});

export const labelOf = ({ kind, metadata: { namespace, name } }: Name): string => `${kind} ${namespace}/${name}`;

export async function openReconcilerWorld(): Promise<ReconcilerWorld> {
  const root = await mkdtemp(join(tmpdir(), "postern-reconcilers-"));
  const dir = join(root, "manifests");
  await mkdir(dir);
  const store = await openStore();
  const log = pino({ level: process.env.TEST_LOG ?? "silent" }, pino.destination(2));
  const source = indexSource(createDirectorySource({ dir, stateDir: join(root, "state"), log }), INDEXES);
  await source.start(() => undefined);
  const api = createStoreApi({ url: store.server.url, rootKey: () => store.rootKey });
  const ctx: OperatorContext = {
    source,
    workspaces: oneWorkspace(api),
    cluster: "test",
    policyCache: createPolicyCache(),
    synced: createSyncedObjects(300_000),
    syncs: createSyncTimes(),
    pods: undefined,
    network: undefined,
    term: () => ({ fence: undefined, signal: new AbortController().signal }),
    onStaleFence: () => undefined,
    resyncMs: 300_000,
    nowMs: Date.now,
    log,
  };

  const objectOf = ({ kind, metadata: { namespace, name } }: Name) => source.get(kind as Kind, { namespace, name });
  const statusIn = (one: Name): Status => (objectOf(one)?.status ?? {}) as Status;
  const fileOf = ({ kind, metadata: { namespace, name } }: Name) => join(dir, `${kind}-${namespace}-${name}.yaml`);

  const work = async (one: Name, within = ctx): Promise<WorkResult> => {
    const reconciler = RECONCILERS.find(({ kind }) => kind === one.kind);
    if (reconciler === undefined) throw new Error(`no reconciler of ${one.kind}`);
    // No poll runs here that would report changes since the last read.
    within.policyCache.forget(one.metadata);
    within.synced.forget(one.kind as Kind, one.metadata);
    return await reconciler.reconcile(one.metadata, within);
  };

  return {
    store,
    source,
    stateDir: join(root, "state"),
    api,
    ctx,
    objectOf,
    statusIn,
    apply: async (one) => {
      await writeFile(fileOf(one), stringify({ apiVersion: API_VERSION, ...one }));
      await waitFor(`${labelOf(one)} to be read`, async () => {
        const object = objectOf(one);
        const isSame = JSON.stringify(object?.spec) === JSON.stringify(one.spec);
        return isSame && object?.metadata.deletionTimestamp === undefined;
      });
    },
    remove: async (one) => {
      await rm(fileOf(one));
      await waitFor(`${labelOf(one)} to be deleted`, async () => {
        const object = objectOf(one);
        return object === undefined || object.metadata.deletionTimestamp !== undefined;
      });
    },
    work,
    reconcile: async (one) => {
      await work(one).catch(() => undefined);
      return statusIn(one);
    },
    close: async () => {
      await source.close();
      await store.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
