import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { CREDENTIALS_PATH } from "../../core/gates/credentials.ts";
import { managerOfPolicy } from "../../core/manifests/manager.ts";
import { controlPlaneAclRules } from "../../edge/redis/acl.ts";
import { makeWorkspace, openSystem, type SpawnedApi, type System } from "../faults/system.ts";
import { call, startApp, withKey } from "../harness/gate.ts";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { isReady, type SidecarProcess, spawnUnready } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { type AnyPod, gateOf, guardedPod, openWebhookWorld, type WebhookWorld } from "./webhook-world.ts";

/*
 * A gate gets its workspace at injection and its Redis user from there. API server, webhook, operator, api-server, Redis and gates are
 * real; the test acts as kubelet and starts a gate with the environment of its pod.
 */

const LONG = { deadlineMs: 60_000 };

interface Side {
  readonly namespace: string;
  readonly workspaceId: string;
  readonly rootKey: string;
}

let world: WebhookWorld;
let system: System;
let api: SpawnedApi;
let keysDir: string;
let dev: Side;
let prod: Side;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await openWebhookWorld();
  system = await openSystem({ ownRedis: true, whenDone: (close) => void closing.push(close) });
  const rules = controlPlaneAclRules({ prefix: system.prefix, managesUsers: true });
  await system.raw.call("ACL", "SETUSER", "central", ...rules, ">secret");
  api = await system.spawnApi({
    REDIS_URL: system.redisUrl.replace("//", "//central:secret@"),
    POSTERN_GATE_CREDENTIALS_CLUSTER: "main",
    KUBECONFIG: world.cluster.kubeconfigPath,
  });
  keysDir = mkdtempSync(join(tmpdir(), "postern-gate-workspaces-"));
  [dev, prod] = [await openSide("dev"), await openSide("prod")];
  await world.startOperator({
    api: { apiUrl: api.url, keys: { rootKeysDir: keysDir } },
    injection: {
      secret: undefined,
      env: { POSTERN_CREDENTIALS_URL: api.url, REDIS_URL: system.redisUrl, POSTERN_REDIS_PREFIX: system.prefix },
    },
  });
}, KUBERNETES_START_MS);
afterAll(async () => {
  await world?.close();
  for (const close of closing) await close();
  rmSync(keysDir, { recursive: true, force: true });
});

/** Creates a workspace with a root key in the operator's folder, and a labeled namespace. The label differs from the workspace id. */
async function openSide(name: string): Promise<Side> {
  const { workspaceId, rootKey } = await makeWorkspace(system, `ws_of_${name}`);
  writeFileSync(join(keysDir, name), rootKey);
  const namespace = await world.namespace({ "postern.dev/workspace": name });
  await kubectl(["create", "serviceaccount", "default", "-n", namespace]);
  return { namespace, workspaceId, rootKey };
}

async function kubectl(args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await world.cluster.kubectl(args);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

/** Creates a guarded pod that names a policy, which may be missing. */
async function createPod(namespace: string): Promise<AnyPod> {
  const annotations = { "postern.dev/policy": "orders" };
  const metadata = { ...guardedPod().metadata, annotations };
  const { pod, message } = await world.create(namespace, { ...guardedPod(), metadata }, { dryRun: false });
  if (pod === undefined) throw new Error(message);
  return pod;
}

const tokenOf = ({ metadata: { namespace, name, uid } }: AnyPod): Promise<string> =>
  kubectl([
    ...["create", "token", "default", "-n", namespace, "--audience", "postern", "--duration", "1h"],
    ...["--bound-object-kind", "Pod", "--bound-object-name", name, "--bound-object-uid", uid],
  ]);

const environmentOf = (pod: AnyPod): Record<string, string> =>
  Object.fromEntries(
    gateOf(pod).env.flatMap(({ name, value }: AnyPod) => (value === undefined ? [] : [[name, value]])),
  );

/** Starts the pod's gate as kubelet does. */
async function runGate(pod: AnyPod): Promise<SidecarProcess & { status(key: string): Promise<number> }> {
  const dir = mkdtempSync(join(tmpdir(), "postern-token-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const tokenFile = join(dir, "token");
  writeFileSync(tokenFile, await tokenOf(pod));
  const app = await startApp();
  onTestFinished(() => app.close());
  const { namespace, name } = pod.metadata;
  const gate = await spawnUnready({
    ...environmentOf(pod),
    POSTERN_POD: `${namespace}/${name}`,
    POSTERN_TOKEN_FILE: tokenFile,
    POSTERN_UPSTREAM: app.url,
    POSTERN_SIDECAR_PORT: "0",
    POSTERN_ADMIN_PORT: "0",
  });
  onTestFinished(async () => void (await gate.process.stop()));
  return { ...gate, status: async (key) => (await call(gate.port, withKey(key))).status };
}

/** Creates a key of the API of the side's policy. */
async function keyOf({ rootKey }: Side): Promise<string> {
  const [policy] = await api.data("policies.listStatus", {}, rootKey);
  return (await api.data("keys.createKey", { apiId: policy.apiId }, rootKey)).key;
}

/** Returns the response to a gate that claims this workspace: `issued` or the error kind. */
async function ask(token: string, workspaceId: string): Promise<string> {
  const response = await fetch(`${api.url}${CREDENTIALS_PATH}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ workspaceId, cluster: "main", policy: "orders" }),
  });
  if (response.status === 200) return "issued";
  const { error } = (await response.json()) as { error: { type: string } };
  return error.type.split("/").at(-1) ?? "";
}

test("each gate waits until its policy is created in the workspace of its namespace", async () => {
  const pods = [await createPod(dev.namespace), await createPod(prod.namespace)];
  expect(pods.map((pod) => environmentOf(pod).POSTERN_WORKSPACE)).toEqual([dev.workspaceId, prod.workspaceId]);
  const gates = await Promise.all(pods.map(runGate));
  const [devGate, prodGate] = gates;
  if (devGate === undefined || prodGate === undefined) throw new Error("no gates");
  expect(await Promise.all(gates.map(isReady))).toEqual([false, false]);
  expect(await devGate.status("any-key")).toBe(503);

  await world.policy(prod.namespace, "orders");
  await waitFor("the gate of prod to be ready", () => isReady(prodGate), LONG);
  const prodKey = await keyOf(prod);
  await waitFor("its key to be accepted", async () => (await prodGate.status(prodKey)) === 200, LONG);
  // The other workspace has a policy of the same name, and its gate keeps waiting.
  expect(await isReady(devGate)).toBe(false);

  await world.policy(dev.namespace, "orders");
  await waitFor("the gate of dev to be ready", () => isReady(devGate), LONG);
  const devKey = await keyOf(dev);
  await waitFor("its key to be accepted", async () => (await devGate.status(devKey)) === 200, LONG);
  expect([await devGate.status(prodKey), await prodGate.status(devKey)]).toEqual([401, 401]);
});

test("neither a pod nor a root key alone can attach a gate to another workspace", async () => {
  const [devPod, prodPod] = [await createPod(dev.namespace), await createPod(prod.namespace)];
  const [devToken, prodToken] = [await tokenOf(devPod), await tokenOf(prodPod)];
  // A manually created pod in dev may claim anything.
  expect([await ask(devToken, dev.workspaceId), await ask(devToken, prod.workspaceId)]).toEqual([
    "issued",
    "policy_not_found",
  ]);
  // A root key of dev may send any manager name. The gates of prod get their workspace from the cluster.
  const apiId = (await api.data("apis.createApi", { name: "forged" }, dev.rootKey)).apiId;
  const manager = managerOfPolicy({ cluster: "main", namespace: prod.namespace, name: "orders" });
  await api.data("managed.applyObject", { ...policyBody(apiId, "orders"), manager }, dev.rootKey);
  expect(environmentOf(await createPod(prod.namespace)).POSTERN_WORKSPACE).toBe(prod.workspaceId);
  expect(await ask(prodToken, prod.workspaceId)).toBe("issued");
  const { key } = await api.data("keys.createKey", { apiId }, dev.rootKey);
  const gate = await runGate(prodPod);
  await waitFor("the gate to be ready", () => isReady(gate), LONG);
  expect(await gate.status(key)).toBe(401);
});

test("pods of a namespace without a workspace are rejected, and relabeling moves new pods", async () => {
  const nowhere = await world.namespace();
  await expect(createPod(nowhere)).rejects.toThrow(/has no workspace/);
  const unknown = await world.namespace({ "postern.dev/workspace": "no-such-team" });
  await expect(createPod(unknown)).rejects.toThrow(/no root key/);

  const moving = await openSide("moving");
  await waitFor("the folder to be followed", () => createPod(moving.namespace).catch(() => undefined), LONG);
  await world.policy(moving.namespace, "orders");
  const before = await createPod(moving.namespace);
  const gate = await runGate(before);
  await waitFor("the gate to be ready", () => isReady(gate), LONG);
  const key = await keyOf(moving);

  await kubectl(["label", "--overwrite", "namespace", moving.namespace, "postern.dev/workspace=prod"]);
  // Takes effect immediately, because the webhook reads the current Namespace.
  const after = await createPod(moving.namespace);
  expect(environmentOf(after).POSTERN_WORKSPACE).toBe(prod.workspaceId);
  expect(await ask(await tokenOf(after), prod.workspaceId)).toBe("policy_not_found");
  // Objects in the old workspace stay active there (docs/decisions/0018).
  await waitFor("its key to be accepted", async () => (await gate.status(key)) === 200, LONG);
});

test("operator admits guarded pods from cached state while api-servers are unavailable", async () => {
  await api.process.stop();
  expect(environmentOf(await createPod(dev.namespace)).POSTERN_WORKSPACE).toBe(dev.workspaceId);
});
