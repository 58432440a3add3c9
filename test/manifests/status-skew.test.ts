import { beforeAll, expect, test } from "vitest";
import { KINDS } from "../../core/manifests/index.ts";
import type { KubeClient, KubeObject } from "../../operator/runtime/kube-client.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { applyCrds } from "../e2e/operator-world.ts";
import { createTestNamespace, KUBERNETES_START_MS, startKubernetes } from "../harness/kubernetes.ts";
import { GOOD_MANIFESTS } from "./cases.ts";

/* An operator of another release, older or newer than the CRDs, writes status fields that they do not have. */

const NAMESPACE = {
  apiVersion: "postern.dev/v1alpha1",
  kind: "RatelimitNamespace",
  metadata: { name: "skew" },
  spec: { name: "skew" },
};

let client: KubeClient;
let namespace: string;
beforeAll(async () => {
  const kubernetes = await startKubernetes();
  await applyCrds(kubernetes);
  namespace = (await createTestNamespace(kubernetes)).name;
  client = (await openCluster(kubernetes.kubeconfigPath, {})).client;
}, KUBERNETES_START_MS);

test.each(KINDS)("status of $kind accepts a field that its schema does not contain", async ({ kind, plural }) => {
  const manifest = [...GOOD_MANIFESTS.map((tried) => tried.manifest), NAMESPACE].find((tried) => tried.kind === kind);
  if (manifest === undefined) throw new Error(`no good manifest of the kind ${kind}`);
  const path = `/apis/${manifest.apiVersion}/namespaces/${namespace}/${plural}`;
  const { metadata } = await client.send<KubeObject>({ method: "POST", path, body: manifest });
  const patched = await client.send<KubeObject>({
    method: "PATCH",
    path: `${path}/${metadata.name}/status`,
    query: { fieldManager: "another-release", force: "true" },
    contentType: "application/apply-patch+yaml",
    body: {
      apiVersion: manifest.apiVersion,
      kind,
      metadata: { name: metadata.name, namespace },
      status: { ofAnotherRelease: "2026-01-01T00:00:00Z" },
    },
  });
  expect(patched.status).toMatchObject({ ofAnotherRelease: "2026-01-01T00:00:00Z" });
});
