import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { type Cluster, conditionOf, openCluster } from "./cluster.ts";
import { imageOf, install, ourCrds, present, RELEASE } from "./installation.ts";
import { enforceNetworkPolicies, knock, type NetworkPolicyEngine } from "./network-policies.ts";
import { APP_PORT, guardedApp, pod, policy, programs, role } from "./sample-app.ts";
import { readSettings } from "./settings.ts";

/*
 * `networkPolicy: Managed` where NetworkPolicies are enforced: what a neighbor pod reaches. Each test goes on where the one before it ended.
 */

const settings = readSettings(process.env);
const suffix = process.env.E2E_SUFFIX ?? randomBytes(3).toString("hex");
const namespace = `postern-network-${suffix}`;
const shop = `shop-network-${suffix}`;
const image = imageOf(settings, "sidecar", settings.tag);
const GATE_PORT = 19_080;
const ORDERS = { kind: "apikeypolicies", name: "orders", namespace: shop };

let cluster: Cluster;
let engine: NetworkPolicyEngine;
beforeAll(async () => {
  cluster = await openCluster(settings);
  engine = await enforceNetworkPolicies(cluster, settings);
  console.error(`e2e: NetworkPolicies are enforced by the ${engine.by}`);
  await install({ cluster, settings, namespace }, present(settings));
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: shop } });
  await cluster.apply(
    programs(shop),
    pod(shop, "client", image, ["node", "-e", "setInterval(() => {}, 1e6)"]),
    role(shop),
    policy(shop),
  );
  await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") === "True", { deadlineMs: 120_000 });
  await cluster.apply(...guardedApp({ namespace: shop, image, replicas: 1 }));
  await cluster.kubectl(["-n", shop, "rollout", "status", "deploy/orders", "--timeout=180s"]);
  await cluster.kubectl(["-n", shop, "wait", "pod/client", "--for=condition=Ready", "--timeout=60s"]);
});
afterAll(async () => {
  if (process.env.E2E_KEEP === "1") return;
  await cluster.run(["delete", "namespace", shop, "--ignore-not-found", "--timeout=90s"]);
  await cluster.helm(["uninstall", RELEASE, "-n", namespace, "--ignore-not-found"]).catch(() => undefined);
  await cluster.run(["delete", "namespace", namespace, "--ignore-not-found", "--timeout=90s"]);
  await cluster.run(["delete", "--ignore-not-found", "--timeout=90s", ...(await ourCrds(cluster))]);
  await engine?.close();
});

const addressOf = async (name = "orders"): Promise<string> => {
  const pods = await cluster.list("pods", shop, `app=${name}`);
  return pods.find(({ metadata }) => metadata.deletionTimestamp === undefined)?.status.podIP;
};
const responds = (url: string, expected: string) =>
  waitFor(`${expected} from ${url}`, async () => (await knock(cluster, shop, url)) === expected, {
    deadlineMs: 60_000,
    everyMs: 500,
  });
const reasonOf = async (type: string) =>
  (await cluster.get("apikeypolicies", "orders", shop))?.status.conditions.find(
    (one: { type: string }) => one.type === type,
  );

test("other pods reach the gate by port and Service but not the app port", async () => {
  const address = await addressOf();
  await responds(`http://${address}:${APP_PORT}/healthz`, "none");
  await responds(`http://${address}:${GATE_PORT}/healthz`, "200");
  await responds("http://orders/x", "401");
  expect(await reasonOf("Bypassable")).toMatchObject({ status: "False", reason: "Succeeded" });
});

test("Service that targets the app port is reported and gets no connection", async () => {
  await cluster.apply({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "direct", namespace: shop },
    spec: { selector: { app: "orders" }, ports: [{ port: 80, targetPort: APP_PORT }] },
  });
  await waitFor("the Service to be named", async () => (await reasonOf("Bypassable"))?.reason === "ServicePastGate");
  expect((await reasonOf("Bypassable")).message).toContain("The Service direct sends requests past the gate");
  await responds("http://direct/healthz", "none");
  await cluster.kubectl(["-n", shop, "delete", "service", "direct"]);
});

test("pod with a hostPort for the app port is rejected", async () => {
  const found = await cluster.get("deployment", "orders", shop);
  const { metadata, spec } = found?.spec.template ?? {};
  const ports = [{ name: "http", containerPort: APP_PORT, hostPort: 33_000 }];
  const bare = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, name: "on-host", namespace: shop } };
  const containers = [{ ...spec.containers[0], ports }];
  const { code, stderr } = await cluster.run(
    ["create", "-f", "-"],
    JSON.stringify({ ...bare, spec: { ...spec, containers } }),
  );
  expect(code).not.toBe(0);
  expect(stderr).toContain("hostPort 33000 for the guarded port");
});

test("switching to Redirect keeps the app port of running pods closed and guards new pods", async () => {
  const before = await addressOf();
  await cluster.apply(policy(shop, { interception: "Redirect" }));
  await cluster.until("Ready", ORDERS, (object) => conditionOf(object, "Ready") === "True");
  // The operator has looked at the pods after the change when it has written what it found.
  await cluster.until("looked at", ORDERS, (object) => conditionOf(object, "Bypassable") === "False");
  expect(await knock(cluster, shop, `http://${before}:${APP_PORT}/healthz`)).toBe("none");
  await cluster.kubectl(["-n", shop, "rollout", "restart", "deploy/orders"]);
  await cluster.kubectl(["-n", shop, "rollout", "status", "deploy/orders", "--timeout=180s"]);
  const after = await addressOf();
  await responds(`http://${after}:${APP_PORT}/x`, "401");
  await responds("http://orders/x", "401");
  await waitFor(
    "the NetworkPolicy to go",
    async () => (await cluster.get("networkpolicy", "postern-orders", shop)) === undefined,
    { deadlineMs: 90_000 },
  );
  await responds(`http://${after}:${APP_PORT}/x`, "401");
});
