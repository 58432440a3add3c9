import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KubeError, type KubeObject } from "../../operator/runtime/kube-client.ts";
import { type OpenCluster, openCluster } from "../../operator/source/cluster.ts";
import type { Operator } from "../../operator/start.ts";
import { aConfig } from "../../operator/test/pods.ts";
import { webhookConfigurations } from "../../operator/webhook/configurations.ts";
import { renderIn } from "../chart/render.ts";
import { KUBERNETES_START_MS, startOwnKubernetes, type TestKubernetes } from "../harness/kubernetes.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { applyCrds, conditionOf, openStore, operatorOf, type Status, type Store } from "./operator-world.ts";
import { gateOf, guardedPod } from "./webhook-world.ts";

/*
 * Two operators in one cluster with one api-server and separate webhooks: one without a class and one of class blue. Request metrics and
 * object messages show which operator handled an object.
 */

const CLASS = "postern.dev/controller-class";
const LONG = { deadlineMs: 60_000 };

let kubernetes: TestKubernetes;
let store: Store;
let cluster: OpenCluster;
let plain: Operator;
let blue: Operator;
const namespace = `t-${randomBytes(4).toString("hex")}`;

beforeAll(async () => {
  kubernetes = await startOwnKubernetes();
  store = await openStore();
  cluster = await openCluster(kubernetes.kubeconfigPath, {});
  await applyCrds(kubernetes);
  await send("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  plain = await open(undefined, ["blue"]);
  blue = await open("blue");
}, KUBERNETES_START_MS);
afterAll(async () => {
  await Promise.all([plain?.close(), blue?.close()]);
  await cluster?.client.close();
  await store?.close();
  await kubernetes?.stop();
});

async function open(controllerClass: string | undefined, otherClasses: string[] = []): Promise<Operator> {
  const name = controllerClass ?? "plain";
  const port = await freePort();
  const configurations = webhookConfigurations({
    name,
    ownNamespace: "default",
    client: (path) => ({ url: `https://127.0.0.1:${port}${path}` }),
    otherClasses,
    ...(controllerClass === undefined ? {} : { controllerClass }),
  });
  const text = configurations.map((one) => JSON.stringify(one)).join("\n---\n");
  const { exitCode, stderr } = await kubernetes.kubectl(["apply", "-f", "-"], text);
  if (exitCode !== 0) throw new Error(stderr);
  const operator = await operatorOf(
    store,
    { kind: "kubernetes", kubeconfig: kubernetes.kubeconfigPath },
    {
      cluster: "main",
      controllerClass,
      admin: { host: "127.0.0.1", port: 0 },
      webhook: {
        host: "127.0.0.1",
        port,
        hosts: ["127.0.0.1"],
        configurationName: name,
        certificate: { secretName: `webhook-${name}` },
        injection: aConfig(),
      },
    },
  );
  await waitFor("its webhook", async () => operator.webhook !== undefined && operator.webhook.problem() === undefined);
  return operator;
}

const send = (method: "POST" | "GET" | "PATCH" | "DELETE", path: string, body?: object) =>
  cluster.client.send<KubeObject>({
    method,
    path,
    ...(body === undefined ? {} : { body }),
    ...(method === "PATCH" ? { contentType: "application/merge-patch+json" } : {}),
  });

const pathOf = (plural: string, name = "") =>
  `/apis/postern.dev/v1alpha1/namespaces/${namespace}/${plural}${name && `/${name}`}`;
const labelled = (name: string, controllerClass: string | undefined) => ({
  name,
  ...(controllerClass === undefined ? {} : { labels: { [CLASS]: controllerClass } }),
});
const role = (name: string, inStore: string, controllerClass?: string) =>
  send("POST", pathOf("roles"), {
    apiVersion: "postern.dev/v1alpha1",
    kind: "Role",
    metadata: labelled(name, controllerClass),
    spec: { name: inStore, permissions: ["orders.read"] },
  });
const statusOf = async (name: string) => (await send("GET", pathOf("roles", name))).status as Status | undefined;
const readyOf = async (name: string) => conditionOf(await statusOf(name), "Ready");
const untilReady = (name: string) =>
  waitFor(`${name} to be Ready`, async () => (await readyOf(name))?.status === "True", LONG);
/** Returns the roles of an operator. */
const seenBy = (operator: Operator): string[] =>
  operator
    .statuses()
    .filter(({ kind }) => kind === "Role")
    .map(({ name }) => name)
    .sort();

test("operator reconciles only objects of its class; without a class, only objects without a class", async () => {
  await Promise.all([role("ours", "ours"), role("theirs", "theirs", "blue"), role("none", "none", "green")]);
  await Promise.all([untilReady("ours"), untilReady("theirs")]);
  expect(seenBy(plain)).toEqual(["ours"]);
  expect(seenBy(blue)).toEqual(["theirs"]);
  // No operator handles a class without an operator.
  const untouched = await send("GET", pathOf("roles", "none"));
  expect(untouched.metadata.finalizers).toBeUndefined();
  expect((await readyOf("none"))?.status).not.toBe("True");
  expect(await store.call("permissions.getRole", { role: "none" })).toMatchObject({ status: 404 });
}, 120_000);

test("database decides which of two operator classes gets a name", async () => {
  await role("first", "shared", "blue");
  await untilReady("first");
  await role("second", "shared");
  await waitFor("the second to stall", async () => (await readyOf("second"))?.reason === "Conflict", LONG);
  await untilReady("first");
  await send("DELETE", pathOf("roles", "second"));
}, 120_000);

test("object whose class changes moves to the other operator with its data", async () => {
  await role("moving", "moving");
  await untilReady("moving");
  const { roleId } = (await statusOf("moving")) ?? {};
  await send("PATCH", pathOf("roles", "moving"), { metadata: { labels: { [CLASS]: "blue" } } });
  await waitFor("blue to have it", async () => seenBy(blue).includes("moving") && !seenBy(plain).includes("moving"));
  await send("PATCH", pathOf("roles", "moving"), { spec: { description: "by blue" } });
  await waitFor(
    "the change",
    async () => (await store.call("permissions.getRole", { role: "moving" })).data?.description === "by blue",
    LONG,
  );
  await untilReady("moving");
  expect((await statusOf("moving"))?.roleId).toBe(roleId);
  await send("DELETE", pathOf("roles", "moving"));
  await waitFor(
    "it to be gone from the store",
    async () => (await store.call("permissions.getRole", { role: "moving" })).status === 404,
    LONG,
  );
}, 120_000);

test("guarded pod gets the policy of its class, and is rejected if no operator has the class", async () => {
  const policy = (name: string, controllerClass?: string) =>
    send("POST", pathOf("apikeypolicies"), {
      apiVersion: "postern.dev/v1alpha1",
      kind: "ApiKeyPolicy",
      metadata: labelled(name, controllerClass),
      spec: { api: { name: `${name}-api` }, target: { port: "http" }, selector: { matchLabels: { app: "orders" } } },
    });
  // The older policy has another class; without classes it would guard the pod.
  await policy("of-blue", "blue");
  await policy("of-none");
  const create = async (controllerClass: string | undefined) => {
    const pod = guardedPod();
    const labels = { ...pod.metadata.labels, ...(controllerClass === undefined ? {} : { [CLASS]: controllerClass }) };
    try {
      const created = await cluster.client.send<KubeObject>({
        method: "POST",
        path: `/api/v1/namespaces/${namespace}/pods`,
        query: { dryRun: "All" },
        body: { ...pod, metadata: { ...pod.metadata, labels } },
      });
      return {
        gate: gateOf(created),
        policy: created.metadata.annotations?.["postern.dev/policy"],
        message: "",
      };
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      return { gate: undefined, policy: undefined, message: error.message };
    }
  };
  const until = (controllerClass: string | undefined, name: string) =>
    waitFor(
      `the policy ${name}`,
      async () => {
        const { gate, policy: its } = await create(controllerClass);
        return gate !== undefined && its === name;
      },
      LONG,
    );
  await until(undefined, "of-none");
  await until("blue", "of-blue");
  const { gate, message } = await create("green");
  expect(gate).toBeUndefined();
  expect(message).toContain(`${CLASS} names another operator`);
}, 120_000);

test.each([
  {
    name: "without a class",
    controllerClass: "",
    refused: /MutatingWebhookConfiguration plain of another release is asked about the same pods/,
  },
  {
    name: "of a class that another release has",
    controllerClass: "blue",
    refused: /MutatingWebhookConfiguration blue of another/,
  },
  { name: "of a class of its own", controllerClass: "green", refused: undefined },
])(
  "chart accepts or rejects a second release $name beside these releases ($refused)",
  async ({ controllerClass, refused }) => {
    const rendered = renderIn(kubernetes.kubeconfigPath, "second", { dev: { enabled: true }, controllerClass });
    if (refused === undefined) expect(await rendered).toContain("second-postern");
    else await expect(rendered).rejects.toThrow(refused);
  },
);
