import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { KUBERNETES_START_MS, startOwnKubernetes, type TestKubernetes } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  applyCrds,
  conditionOf,
  openStore,
  operatorOf,
  resourceOf,
  type Status,
  type Store,
  type TestManifest,
  toJson,
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
let store: Store;
let operator: Awaited<ReturnType<typeof operatorOf>>;
beforeAll(async () => {
  kubernetes = await startOwnKubernetes();
  store = await openStore();
}, KUBERNETES_START_MS * 2);
afterAll(async () => {
  await operator?.close();
  await store?.close();
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
const apply = async (one: TestManifest) => {
  const { exitCode, stderr } = await kubernetes.kubectl(["apply", "-f", "-"], toJson(one));
  if (exitCode !== 0) throw new Error(stderr);
};
const status = async ({ kind, metadata }: Pick<TestManifest, "kind" | "metadata">): Promise<Status> => {
  const { stdout } = await kubernetes.kubectl(["-n", "default", "get", resourceOf(kind), metadata.name, "-o", "json"]);
  return (JSON.parse(stdout) as { status?: Status }).status ?? {};
};

/** Applies the CRDs with each schema changed. */
async function applyChanged({ kubectl }: Pick<TestKubernetes, "kubectl">, change: (schema: Schema) => void) {
  for (const name of await readdir("crds")) {
    const crd = parse(await readFile(join("crds", name), "utf8")) as Crd;
    for (const version of crd.spec.versions) change(version.schema.openAPIV3Schema);
    const args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    const { exitCode, stderr } = await kubectl(args, stringify(crd, { aliasDuplicateObjects: false }));
    if (exitCode !== 0) throw new Error(stderr);
  }
  await kubectl(["wait", "--for=condition=Established", "--timeout=30s", "-f", "crds/"]);
}

const specOf = (schema: Schema): Schema => schema.properties?.spec ?? {};
const statusOf = (schema: Schema): Schema => schema.properties?.status ?? {};

test("operator under newer CRDs is Ready and lists the ignored fields", async () => {
  await applyChanged(kubernetes, (schema) => {
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
  await apply({ ...role("later"), spec: { name: "later", permissions: ["a", "b"] } });
  await waitFor("the warning to end", async () => {
    return conditionOf(await status(role("later")), "UnknownFields")?.status === "False";
  });
});

test("operator under older CRDs writes the known status fields and is Ready", async () => {
  await applyChanged(kubernetes, (schema) => {
    const { properties = {} } = statusOf(schema);
    // Older CRDs prune unknown fields.
    delete statusOf(schema)["x-kubernetes-preserve-unknown-fields"];
    delete properties.policyVersion;
    delete properties.roleId;
    delete properties.dataPlane?.properties?.maxStalenessMs;
    delete specOf(schema).properties?.networkPolicy;
  });
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
