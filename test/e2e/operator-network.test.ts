import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import {
  conditionOf,
  eventsOf,
  openKubernetesWorld,
  type TestManifest,
  untilDisconnected,
  untilReason,
} from "./operator-world.ts";
import { type PodOptions, runPod } from "./running-pods.ts";

/*
 * The NetworkPolicy of an ApiKeyPolicy on a real API server without a network plugin.
 */

let world: Awaited<ReturnType<typeof openKubernetesWorld>>;
beforeAll(async () => {
  world = await openKubernetesWorld();
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

const running: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((stop) => stop()));
});

const policy = (name: string, spec: object = {}): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name, namespace: world.namespace },
  spec: {
    api: { name: `${name}-api` },
    target: { port: "http" },
    selector: { matchLabels: { app: name } },
    ...spec,
  },
});

async function startPod(name: string, app: string, options: Omit<PodOptions, "app"> = {}) {
  const labels = { "postern.dev/gated-by": app, ...options.labels };
  const stop = await runPod(world, name, {
    app,
    gate: true,
    annotations: { "postern.dev/policy": app },
    ...options,
    labels,
  });
  running.push(stop);
  return stop;
}

const networkPolicyOf = (name: string) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name, namespace: world.namespace },
});
// biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of any shape.
const networkPolicy = (name: string): Promise<any> => world.objects.get(networkPolicyOf(name));

const DEADLINE = { deadlineMs: 30_000 };
const untilBypassable = async (one: TestManifest, status: string, reason: string) => {
  let last: unknown;
  return await waitFor(
    `${one.metadata.name} to be Bypassable ${status}`,
    async () => {
      last = conditionOf(await world.status(one), "Bypassable");
      const found = conditionOf(await world.status(one), "Bypassable");
      return found?.status === status && found.reason === reason ? found : undefined;
    },
    DEADLINE,
  ).catch((error: unknown) => {
    throw new Error(`the last was ${JSON.stringify(last)}`, { cause: error });
  });
};
const until = (what: string, condition: () => Promise<unknown>) =>
  waitFor(what, async () => ((await condition()) ? true : undefined), DEADLINE);

const portsOf = (found: { spec: { ingress: Array<{ ports: object[] }> } } | undefined) => found?.spec.ingress[0]?.ports;

test("managed NetworkPolicy is created and repaired, and deleted after a change to networkPolicy None", async () => {
  const orders = policy("orders");
  await world.apply(orders);
  await untilReason(world, orders, "Succeeded");
  await untilBypassable(orders, "Unknown", "NoPods");
  await startPod("orders-1", "orders");
  await untilBypassable(orders, "False", "Succeeded");
  const written = await networkPolicy("postern-orders");
  expect(written.metadata).toMatchObject({
    labels: { "app.kubernetes.io/managed-by": "postern" },
    ownerReferences: [{ kind: "ApiKeyPolicy", name: "orders", controller: true }],
    managedFields: [{ manager: "postern-operator", operation: "Apply" }],
  });
  expect(written.spec.podSelector).toMatchObject({ matchLabels: { "postern.dev/gated-by": "orders" } });
  expect(portsOf(written)).toContainEqual({ protocol: "TCP", port: 8081, endPort: 65_535 });
  expect(portsOf(written)).not.toContainEqual(expect.objectContaining({ port: 8080 }));

  // A correct NetworkPolicy is not rewritten.
  await startPod("orders-2", "orders");
  const version = written.metadata.resourceVersion;
  expect((await networkPolicy("postern-orders")).metadata.resourceVersion).toBe(version);
  await world.objects.patch(networkPolicyOf("postern-orders"), { spec: { ingress: [{}] } });
  await until("the edit to be undone", async () => portsOf(await networkPolicy("postern-orders")) !== undefined);
  expect((await networkPolicy("postern-orders")).spec).toEqual(written.spec);

  await world.objects.remove(networkPolicyOf("postern-orders"));
  await until("it to be back", async () => (await networkPolicy("postern-orders")) !== undefined);
  expect((await networkPolicy("postern-orders")).spec).toEqual(written.spec);
  await untilBypassable(orders, "False", "Succeeded");

  const events = (await eventsOf(world, "orders")).filter(({ reason }) => reason === "DriftCorrected");
  expect(events.map(({ note }) => note).sort()).toEqual([
    "The NetworkPolicy postern-orders was deleted and has been restored.",
    "The NetworkPolicy postern-orders was edited and has been restored.",
  ]);

  // Starts a pod in which the port name has another number.
  await startPod("orders-3", "orders", { gate: { guards: 3000 } });
  const both = { protocol: "TCP", port: 3001, endPort: 8079 };
  await until("both ports to be closed", async () =>
    portsOf(await networkPolicy("postern-orders"))?.some((port) => isDeepStrictEqual(port, both)),
  );

  await world.apply(policy("orders", { networkPolicy: "None" }));
  await untilBypassable(orders, "True", "NetworkPolicyDisabled");
  await until("it to be deleted", async () => (await networkPolicy("postern-orders")) === undefined);
  await world.apply(orders);
  await untilBypassable(orders, "False", "Succeeded");
  // Gates run on without their policy, so the app port stays closed: Kubernetes deletes the NetworkPolicy with the last pod.
  await world.remove(orders);
  await untilDisconnected(world, orders);
  const left = await networkPolicy("postern-orders");
  expect(portsOf(left)).not.toContainEqual(expect.objectContaining({ port: 8080 }));
  expect(
    left.metadata.ownerReferences.map(({ kind, name }: Record<string, string>) => `${kind} ${name}`).sort(),
  ).toEqual(["orders-1", "orders-2", "orders-3"].map((name) => `Pod ${name}`));

  await world.apply(orders);
  await until("it to belong to the new object", async () => {
    const { metadata } = await networkPolicy("postern-orders");
    return metadata.uid === left.metadata.uid && metadata.ownerReferences[0].kind === "ApiKeyPolicy";
  });
  expect((await networkPolicy("postern-orders")).metadata.ownerReferences).toHaveLength(1);
  await untilBypassable(orders, "False", "Succeeded");
  // This cluster has no garbage collector, so the operator must have deleted it.
  await Promise.all(running.splice(0).map((stop) => stop()));
  await untilBypassable(orders, "Unknown", "NoPods");
  await world.remove(orders);
  await untilDisconnected(world, orders);
  expect(await networkPolicy("postern-orders")).toBeUndefined();
}, 120_000);

test("NetworkPolicy of the same name with another owner is kept and reported", async () => {
  const podSelector = { matchLabels: { app: "something-else" } };
  await world.objects.create({
    ...networkPolicyOf("postern-taken"),
    spec: { podSelector, policyTypes: ["Ingress"] },
  });
  const before = await networkPolicy("postern-taken");
  const taken = policy("taken", { target: { port: 8080 } });
  await world.apply(taken);
  await startPod("taken-1", "taken");
  const status = await untilReason(world, taken, "Conflict");
  expect(conditionOf(status, "Stalled")?.message).toContain("NetworkPolicy postern-taken");
  expect(conditionOf(status, "Accepted")).toMatchObject({ status: "True" });
  expect(status).toMatchObject({ policyId: expect.any(String), policyVersion: expect.any(Number) });
  await untilBypassable(taken, "True", "Conflict");
  await world.remove(taken);
  await untilDisconnected(world, taken);
  expect(await networkPolicy("postern-taken")).toEqual(before);

  // The NetworkPolicy is written once the name is free.
  await world.apply(taken);
  await untilReason(world, taken, "Conflict");
  await world.objects.remove(networkPolicyOf("postern-taken"));
  await untilReason(world, taken, "Succeeded");
  await untilBypassable(taken, "False", "Succeeded");
}, 120_000);

test("NetworkPolicy is not needed for Redirect, and unguarded pods are reported", async () => {
  const kernel = policy("kernel", { interception: "Redirect" });
  const beside = policy("beside", { interception: "None" });
  for (const one of [kernel, beside]) await world.apply(one);
  await startPod("kernel-1", "kernel", { gate: { redirects: true } });
  await startPod("beside-1", "beside");
  await untilBypassable(kernel, "False", "Redirected");
  await untilBypassable(beside, "True", "InterceptionDisabled");
  expect(await networkPolicy("postern-kernel")).toBeUndefined();
  expect(await networkPolicy("postern-beside")).toBeUndefined();

  const shared = policy("shared");
  await world.apply(shared);
  await startPod("shared-1", "shared");
  await untilBypassable(shared, "False", "Succeeded");
  const stop = await startPod("shared-bare", "shared", { gate: false, annotations: {} });
  await untilBypassable(shared, "True", "UnguardedPods");
  await stop();
  await untilBypassable(shared, "False", "Succeeded");
  await world.objects.create({
    ...networkPolicyOf("wide"),
    spec: { podSelector: { matchLabels: { app: "shared" } }, ingress: [{ ports: [{ port: 8080 }] }] },
  });
  const { message } = await untilBypassable(shared, "Unknown", "ConflictingNetworkPolicy");
  expect(message).toContain("The NetworkPolicy wide selects pods of this policy and may open the app's port");
  // The managed NetworkPolicy would open what the other closes, so it is deleted.
  await until("ours to be deleted", async () => (await networkPolicy("postern-shared")) === undefined);
  const elsewhere = { spec: { podSelector: { matchLabels: { app: "elsewhere" } } } };
  await world.objects.patch(networkPolicyOf("wide"), elsewhere);
  await untilBypassable(shared, "False", "Succeeded");
  await until("ours to be back", async () => (await networkPolicy("postern-shared")) !== undefined);
}, 120_000);

test("NetworkPolicy remains after a switch to Redirect until the last Port pod ends", async () => {
  const moved = policy("moved");
  await world.apply(moved);
  const stopOld = await startPod("moved-old", "moved");
  await untilBypassable(moved, "False", "Succeeded");
  await world.apply(policy("moved", { interception: "Redirect" }));
  const labels = { "postern.dev/interception": "Redirect" };
  await startPod("moved-new", "moved", { gate: { redirects: true }, labels });
  await until("both pods to count", async () => {
    const { dataPlane } = ((await world.status(moved)) ?? {}) as { dataPlane?: { silent?: number } };
    return dataPlane?.silent === 2;
  });
  await untilBypassable(moved, "False", "Succeeded");
  const found = await networkPolicy("postern-moved");
  expect(portsOf(found)).not.toContainEqual(expect.objectContaining({ port: 8080 }));
  expect(found.spec.podSelector.matchExpressions).toEqual([
    { key: "postern.dev/interception", operator: "NotIn", values: ["Redirect", "None"] },
  ]);
  await stopOld();
  await untilBypassable(moved, "False", "Redirected");
  await until("it to be deleted", async () => (await networkPolicy("postern-moved")) === undefined);
}, 120_000);

test("NetworkPolicy remains after the policy loses its selector, and is adopted when the selector returns", async () => {
  const bare = policy("bare");
  await world.apply(bare);
  await startPod("bare-0", "bare");
  await untilBypassable(bare, "False", "Succeeded");
  const before = await networkPolicy("postern-bare");
  await world.apply(policy("bare", { selector: undefined }));
  await untilBypassable(bare, "True", "SelectorMissing");
  const ownersOf = async () => (await networkPolicy("postern-bare"))?.metadata.ownerReferences ?? [];
  await until("it to belong to the pod", async () => (await ownersOf())[0]?.name === "bare-0");
  expect((await networkPolicy("postern-bare")).spec).toEqual(before.spec);
  await world.apply(bare);
  await until("it to belong to the policy", async () => (await ownersOf())[0]?.kind === "ApiKeyPolicy");
  expect((await networkPolicy("postern-bare")).metadata.uid).toBe(before.metadata.uid);
}, 120_000);

test("Service that bypasses the gate is reported until it targets the port by name", async () => {
  const served = policy("served");
  await world.apply(served);
  await startPod("served-1", "served");
  await untilBypassable(served, "False", "Succeeded");
  const service = (name: string, targetPort: number | string, more: object = {}) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: world.namespace },
    spec: { selector: { app: "served" }, ports: [{ port: 80, targetPort }], ...more },
  });
  await world.objects.create(service("served-peers", "http", { clusterIP: "None" }));
  await until("the headless one to be named", async () =>
    conditionOf(await world.status(served), "Bypassable")?.message.includes("headless Service served-peers"),
  );
  await world.objects.create(service("served-direct", 8080));
  const { message } = await untilBypassable(served, "True", "ServicePastGate");
  expect(message).toContain("The Service served-direct sends requests to the app's port, past the gate");
  const noted = async () => (await eventsOf(world, "served")).find(({ reason }) => reason === "ServicePastGate");
  expect(await waitFor("the Event", noted)).toMatchObject({ type: "Warning", note: message });
  await world.objects.patch(service("served-direct", "http"), { spec: { ports: [{ port: 80, targetPort: "http" }] } });
  await untilBypassable(served, "False", "Succeeded");
}, 120_000);
