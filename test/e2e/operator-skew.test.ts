import { afterAll, beforeAll, expect, test } from "vitest";
import type { KubeObject } from "../../operator/runtime/kube-client.ts";
import { KUBERNETES_START_MS, startOwnKubernetes } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  applyCrds,
  conditionOf,
  openManifests,
  openStore,
  operatorOf,
  type Status,
  type Store,
  type TestManifest,
  untilReason,
} from "./operator-world.ts";

/* CRDs of another version than the operator: newer ones during an upgrade or after a rollback, older ones before an upgrade. */

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  type?: string;
  default?: unknown;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
}
interface Crd {
  spec: { versions: Array<{ schema: { openAPIV3Schema: Schema } }> };
}

let kubernetes: Awaited<ReturnType<typeof startOwnKubernetes>>;
let manifests: Awaited<ReturnType<typeof openManifests>>;
let store: Store;
let operator: Awaited<ReturnType<typeof operatorOf>>;
beforeAll(async () => {
  kubernetes = await startOwnKubernetes();
  manifests = await openManifests(kubernetes);
  store = await openStore();
}, KUBERNETES_START_MS * 2);
afterAll(async () => {
  await operator?.close();
  await store?.close();
  await manifests?.close();
  await kubernetes?.stop();
});

const role = (name: string): TestManifest => ({
  kind: "Role",
  metadata: { name, namespace: "default" },
  spec: { name, permissions: ["a"] },
});
const policy = (name: string, spec = {}): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: "default" },
  spec: { api: { name: `${name}-api` }, target: { port: 80 }, rules: [{ match: { methods: ["GET"] } }], ...spec },
});
const apply = (one: TestManifest) => manifests.apply(one);
const status = async (one: Pick<TestManifest, "kind" | "metadata">): Promise<Status> =>
  (await manifests.status(one)) ?? {};

/** Applies the CRDs with each schema changed. */
const applyChanged = (change: (schema: Schema) => void) =>
  applyCrds(kubernetes, (crd: Crd) => {
    for (const version of crd.spec.versions) change(version.schema.openAPIV3Schema);
  });

/** Waits until the API server reads the object by the changed CRD, which it does soon after the change. */
const untilPruned = (one: TestManifest, field: (found: KubeObject) => unknown) =>
  waitFor(`${one.kind} to be pruned`, async () => {
    const found = await manifests.get(one);
    return found !== undefined && field(found) === undefined;
  });

const specOf = (schema: Schema): Schema => schema.properties?.spec ?? {};
const statusOf = (schema: Schema): Schema => schema.properties?.status ?? {};

test("object with newer CRDs than the operator is Ready and lists the ignored fields", async () => {
  await applyChanged((schema) => {
    const { properties = {} } = specOf(schema);
    properties.strictness = { type: "string", default: "Normal" };
    if (properties.target?.properties) properties.target.properties.tls = { type: "string", default: "Plain" };
  });
  operator = await operatorOf(store, { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath });
  for (const one of [role("later"), policy("later")]) {
    await apply(one);
    const ready = await untilReason({ status }, one, "Succeeded");
    expect(conditionOf(ready, "Stalled")).toBeUndefined();
    const told = conditionOf(ready, "UnknownFields");
    expect(told).toMatchObject({ status: "True", reason: "NewerSchema" });
    expect(told?.message).toContain("spec.strictness");
    expect(told?.message.includes("spec.target.tls")).toBe(one.kind === "ApiKeyPolicy");
  }
}, 60_000);

test("CRD rollback removes unknown fields and the warning", async () => {
  await applyCrds(kubernetes);
  let changes = 0;
  await waitFor(
    "the warning to end",
    async () => {
      // A watch that the API server opened before the rollback adds the default to a change, so one change may not be enough.
      await apply({ ...role("later"), spec: { name: "later", permissions: ["a", `b${changes++}`] } });
      return conditionOf(await status(role("later")), "UnknownFields")?.status === "False";
    },
    { deadlineMs: 60_000, everyMs: 250 },
  );
}, 90_000);

test("object with older CRDs than the operator gets the known status fields and is Ready", async () => {
  await applyChanged((schema) => {
    const { properties = {} } = statusOf(schema);
    // Older CRDs prune unknown fields.
    delete statusOf(schema)["x-kubernetes-preserve-unknown-fields"];
    delete properties.policyVersion;
    delete properties.roleId;
    delete properties.dataPlane?.properties?.maxStalenessMs;
    delete specOf(schema).properties?.networkPolicy;
  });
  await untilPruned(role("later"), ({ status }) => (status as Status).roleId);
  await untilPruned(policy("later"), ({ status }) => (status as Status).policyVersion);
  for (const one of [role("earlier"), policy("earlier")]) {
    await apply(one);
    const ready = await untilReason({ status }, one, "Succeeded");
    for (const field of ["roleId", "policyVersion"]) expect(ready).not.toHaveProperty(field);
    expect(conditionOf(ready, "Ready")).toMatchObject({ status: "True" });
  }
  expect(await status(policy("earlier"))).toMatchObject({
    apiId: expect.any(String),
    dataPlane: { pods: 0, updated: 0 },
  });
  // After the CRD upgrade, pruned fields return with the next change.
  await applyCrds(kubernetes);
}, 60_000);
