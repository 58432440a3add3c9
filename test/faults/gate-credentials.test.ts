import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { CREDENTIALS_PATH } from "../../core/gates/credentials.ts";
import { managerOfPolicy } from "../../core/manifests/manager.ts";
import { policyIdOf } from "../../core/policies/policy-id.ts";
import { controlPlaneAclRules } from "../../edge/redis/acl.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { call, startApp, withKey } from "../harness/gate.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../harness/kubernetes.ts";
import { spawnSidecar } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { commandsBeyond, expectRefused, OTHER_WORKSPACE } from "./refused-commands.ts";
import { openSystem, type SpawnedApi, type System } from "./system.ts";

/*
 * Gates get their Redis users from api-servers for their pod token: a real Kubernetes API issues and reviews tokens, and a real Redis
 * restricts the users.
 */

const CLUSTER = "east";
const LONG = { deadlineMs: 60_000 };

let kubernetes: TestKubernetes;
beforeAll(async () => {
  kubernetes = await startKubernetes();
}, KUBERNETES_START_MS);

async function kubectl(args: string[], stdin?: string): Promise<string> {
  const { exitCode, stdout, stderr } = await kubernetes.kubectl(args, stdin);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

interface KubePod {
  readonly namespace: string;
  readonly name: string;
  token(options?: { audience?: string; isBound?: boolean }): Promise<string>;
  remove(): Promise<void>;
}

/** Creates a pod object; no node runs it. */
async function createPod(namespace: string): Promise<KubePod> {
  const name = `orders-${randomBytes(3).toString("hex")}`;
  const container = { name: "app", image: "app" };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: { serviceAccountName: "default", containers: [container] },
  };
  await kubectl(["create", "-f", "-"], JSON.stringify(pod));
  const uid = await kubectl(["get", "pod", name, "-n", namespace, "-o", "jsonpath={.metadata.uid}"]);
  return {
    namespace,
    name,
    token: ({ audience = "postern", isBound = true } = {}) =>
      kubectl([
        ...["create", "token", "default", "-n", namespace, "--audience", audience, "--duration", "1h"],
        ...(isBound ? ["--bound-object-kind", "Pod", "--bound-object-name", name, "--bound-object-uid", uid] : []),
      ]),
    remove: async () => void (await kubectl(["delete", "pod", name, "-n", namespace, "--force", "--grace-period=0"])),
  };
}

async function createNamespace(): Promise<string> {
  const { name, drop } = await createTestNamespace(kubernetes);
  onTestFinished(drop);
  await kubectl(["create", "serviceaccount", "default", "-n", name]);
  return name;
}

interface World {
  readonly system: System;
  readonly api: SpawnedApi;
  readonly workspaceId: string;
  readonly namespace: string;
  readonly apiId: string;
  readonly keyId: string;
  readonly key: string;
  readonly policyId: string;
  readonly spawnApi: () => Promise<SpawnedApi>;
}

/** Opens an api-server that manages the users of a test Redis, and a policy `orders` of a namespace as its operator creates it. */
async function openWorld(): Promise<World> {
  const system = await openSystem({ ownRedis: true });
  const { prefix } = system;
  await makeGlobal(system);
  const spawnApi = () =>
    system.spawnApi({
      REDIS_URL: system.redisUrl.replace("//", "//central:secret@"),
      POSTERN_GATE_CREDENTIALS_CLUSTER: CLUSTER,
      KUBECONFIG: kubernetes.kubeconfigPath,
    });
  const api = await spawnApi();
  const namespace = await createNamespace();
  const { apiId, keyId, key } = await makeKey(api, {
    credits: { remaining: 1_000 },
    ratelimits: [{ name: "all", limit: 1_000, duration: 3_600_000, autoApply: true }],
  });
  const manager = managerOfPolicy({ cluster: CLUSTER, namespace, name: "orders" });
  await api.data("managed.applyObject", { ...policyBody(apiId, "orders"), manager });
  const workspaceId = await system.workspaceId();
  const policyId = policyIdOf({ workspaceId, manager });
  const record = new RedisKeys(prefix).record({ workspaceId, kind: "policy", id: policyId }).key;
  await waitFor("the policy to be projected", async () => (await system.raw.exists(record)) === 1);
  return { system, api, workspaceId, namespace, apiId, keyId, key, policyId, spawnApi };
}

const makeGlobal = ({ raw, prefix }: System) =>
  raw.call("ACL", "SETUSER", "central", ...controlPlaneAclRules({ prefix, managesUsers: true }), ">secret");

async function askCredentials({ api, workspaceId }: World, token: string, body: object = {}) {
  const response = await fetch(`${api.url}${CREDENTIALS_PATH}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ workspaceId, cluster: CLUSTER, policy: "orders", ...body }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  return { status: response.status, body: (await response.json()) as any };
}

/** Starts the gate of the pod, whose only secret is its token. */
async function spawnGate(world: World, pod: KubePod) {
  const { system, api, workspaceId } = world;
  const dir = mkdtempSync(join(tmpdir(), "postern-token-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const tokenFile = join(dir, "token");
  writeFileSync(tokenFile, await pod.token());
  const app = system.closing(await startApp());
  const gate = await spawnSidecar({
    REDIS_URL: system.redisUrl,
    POSTERN_REDIS_PREFIX: system.prefix,
    POSTERN_WORKSPACE: workspaceId,
    POSTERN_POLICY: `${CLUSTER}/${pod.namespace}/orders`,
    POSTERN_POD: `${pod.namespace}/${pod.name}`,
    POSTERN_CREDENTIALS_URL: api.url,
    POSTERN_TOKEN_FILE: tokenFile,
    POSTERN_UPSTREAM: app.url,
  });
  system.closing({ close: () => gate.process.stop() });
  return { ...gate, status: async (key: string) => (await call(gate.port, withKey(key))).status };
}

const usersOf = async (raw: Redis, prefix: string): Promise<string[]> =>
  ((await raw.call("ACL", "USERS")) as string[]).filter((name) => name.startsWith(`${prefix}-gate-`));

async function connect(system: System, { username, password }: { username: string; password: string }): Promise<Redis> {
  const pod = new Redis(system.redisUrl.replace("//", `//${username}:${password}@`));
  pod.on("error", () => undefined);
  onTestFinished(() => pod.disconnect());
  await waitFor("the connection", () => pod.status === "ready");
  return pod;
}

describe("a gate with no secret except its pod's token", () => {
  test("gate with only a pod token works with a least-privilege Redis user", async () => {
    const world = await openWorld();
    const { system, api, key, keyId, policyId, namespace } = world;
    const pod = await createPod(namespace);
    await system.raw.call("ACL", "LOG", "RESET");
    const gate = await spawnGate(world, pod);
    await waitFor("the gate to serve", async () => (await gate.status(key)) === 200, LONG);
    for (let i = 0; i < 3; i++) expect(await gate.status(key)).toBe(200);
    expect(await gate.status("nobody_has_this_key")).toBe(401);
    await waitFor("what was spent to be written", async () => {
      const { credits } = await api.data("keys.getKey", { keyId });
      return credits.remaining === 996;
    });
    await waitFor("the events to be stored", async () => {
      const { rowCount } = await system.db.query("select from verification_events where key_id = $1", [keyId]);
      return (rowCount ?? 0) >= 4;
    });
    await waitFor(
      "the report to be seen",
      async () => {
        const { dataPlane } = await api.data("policies.getPolicy", { policyId });
        return dataPlane?.pods === 1;
      },
      LONG,
    );
    await api.data("keys.updateKey", { keyId, enabled: false });
    await waitFor("the change to be followed", async () => (await gate.status(key)) === 401);
    const log = (await system.raw.call("ACL", "LOG")) as unknown[][];
    const own = log.filter((entry) => String(entry).includes("-gate-")).map(String);
    expect(own).toEqual([]);
    expect(await usersOf(system.raw, system.prefix)).toHaveLength(1);
    // Neither logs nor the Redis user list contain its password.
    expect(gate.process.stderr()).not.toMatch(/password/i);
  });

  test("gate serves while api-servers are unavailable and renews its lost Redis user", async () => {
    const world = await openWorld();
    const { system, api, key, namespace } = world;
    const gate = await spawnGate(world, await createPod(namespace));
    await waitFor("the gate to serve", async () => (await gate.status(key)) === 200, LONG);
    await api.process.stop();
    const [user = ""] = await usersOf(system.raw, system.prefix);
    await system.raw.call("CLIENT", "KILL", "USER", user);
    await waitFor(
      "it to be back on new connections",
      async () => {
        const clients = String(await system.raw.call("CLIENT", "LIST"));
        return clients.includes(`user=${user}`) && (await gate.status(key)) === 200;
      },
      LONG,
    );
    // The restarted Redis has no users file: users and data are lost.
    await system.redis.restart();
    await waitFor("Redis", () => system.raw.ping().then(() => true));
    expect(await usersOf(system.raw, system.prefix)).toEqual([]);
    await makeGlobal(system);
    const again = await system.spawnApi({
      REDIS_URL: system.redisUrl.replace("//", "//central:secret@"),
      POSTERN_API_PORT: new URL(api.url).port,
      POSTERN_GATE_CREDENTIALS_CLUSTER: CLUSTER,
      KUBECONFIG: kubernetes.kubeconfigPath,
    });
    expect(again.url).toBe(api.url);
    await waitFor("a new user", async () => (await usersOf(system.raw, system.prefix)).length === 1, LONG);
    await waitFor("the gate to serve with it", async () => (await gate.status(key)) === 200, LONG);
  });
});

describe("a flood of tokens from one address", () => {
  test("token flood from one address gets 429 while other gates get Redis users", async () => {
    const world = await openWorld();
    const { api, workspaceId, namespace } = world;
    const { hostname, port } = new URL(api.url);
    const valid = await (await createPod(namespace)).token();
    const forged = `${valid.slice(0, valid.lastIndexOf("."))}.${"A".repeat(342)}`;
    const body = JSON.stringify({ workspaceId, cluster: CLUSTER, policy: "orders" });
    const ask = async (localAddress: string, token: string) => {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const sent = request({
        hostname,
        port,
        path: CREDENTIALS_PATH,
        method: "POST",
        headers,
        localAddress,
        agent: false,
      });
      sent.end(body);
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      await text(response);
      return { status: response.statusCode, retryAfter: response.headers["retry-after"] };
    };
    const seen = new Map<number | undefined, number>();
    let isFlooding = true;
    const flood = async () => {
      while (isFlooding) {
        const { status, retryAfter } = await ask("127.0.0.2", forged);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        if (status === 429) expect(Number(retryAfter)).toBeGreaterThan(0);
        await sleep(5);
      }
    };
    const floods = Array.from({ length: 20 }, flood);
    await waitFor("the flood to be refused", () => (seen.get(429) ?? 0) > 100, LONG);
    const gates = await Promise.all(
      [3, 4, 5, 6].map(async (last) => await ask(`127.0.0.${last}`, await (await createPod(namespace)).token())),
    );
    expect(gates.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    // The flooding address is rejected even with a valid token.
    expect((await ask("127.0.0.2", valid)).status).toBe(429);
    isFlooding = false;
    await Promise.all(floods);
    expect([...seen.keys()].sort()).toEqual([401, 429]);
    expect(seen.get(401)).toBeLessThanOrEqual(20);
  });
});

describe("the Redis user of a gate", () => {
  test("Redis user of a gate is limited to its policy and pod", async () => {
    const world = await openWorld();
    const { system, workspaceId, policyId, keyId, namespace } = world;
    const { prefix } = system;
    const pod = await createPod(namespace);
    const { status, body } = await askCredentials(world, await pod.token());
    expect(status).toBe(200);
    expect(body.validMs).toBeGreaterThan(3_600_000);
    const user = await connect(system, body);
    const [record = ""] = await waitFor("the key to be projected", async () => {
      const found = await system.raw.keys(`${prefix}:${workspaceId}:k:*`);
      return found.length > 0 && found;
    });
    await system.raw.set(`${prefix}:${OTHER_WORKSPACE}:k:{x}`, "theirs");
    const dump = await system.raw.dumpBuffer(record);
    expect(String(await user.call("getrange", record, "0", "-1"))).toContain(keyId);
    for (const command of commandsBeyond({ prefix, workspaceId, keyId, record, dump })) {
      await expectRefused(user, command);
    }
    const keys = new RedisKeys(prefix);
    const own = keys.podsOwn(workspaceId, policyId, `${namespace}/${pod.name}`);
    expect(await user.hset(own, "x", "1")).toBe(1);
    for (const command of [
      ["getrange", keys.record({ workspaceId, kind: "policy", id: "pol_other" }).key, "0", "-1"],
      ["hset", keys.pods(workspaceId, policyId), "another/pod", "forged"],
      ["hset", keys.podsOwn(workspaceId, policyId, `${namespace}/other`), "x", "forged"],
      ["hset", keys.podsOwn(workspaceId, "pol_other", `${namespace}/${pod.name}`), "x", "forged"],
      ["hget", keys.pods(workspaceId, "pol_other"), "x"],
      ["zadd", keys.podsIssued(workspaceId, policyId), "9", "another/pod"],
      ["zadd", keys.gateUsers(), "9", "me"],
      ["del", keys.gateUsers()],
      ["acl", "setuser", "me", "+@all"],
      ["acl", "deluser", "central"],
      ["acl", "users"],
      ["acl", "whoami"],
    ]) {
      await expectRefused(user, command);
    }
  });

  test("Redis user of a gate requires a matching namespace, cluster, workspace and audience", async () => {
    const world = await openWorld();
    const pod = await createPod(world.namespace);
    const [elsewhere, fresh] = [await createPod(await createNamespace()), await createPod(world.namespace)];
    const token = await pod.token();
    const kindOf = async (given: string, body: object = {}) => {
      const response = await askCredentials(world, given, body);
      return response.status === 200 ? "issued" : String(response.body.error.type).split("/").at(-1);
    };
    const forged = `${token.slice(0, token.lastIndexOf("."))}.${"A".repeat(342)}`;
    expect({
      own: await kindOf(token),
      elsewhere: await kindOf(await elsewhere.token()),
      otherPolicy: await kindOf(token, { policy: "none" }),
      namedPath: await kindOf(token, { policy: `../${world.namespace}/orders` }),
      otherWorkspace: await kindOf(token, { workspaceId: OTHER_WORKSPACE }),
      otherCluster: await kindOf(token, { cluster: "west" }),
      forTheKubernetesApi: await kindOf(await pod.token({ audience: "https://kubernetes.default.svc" })),
      ofNoPod: await kindOf(await pod.token({ isBound: false })),
      forged: await kindOf(forged),
      rootKey: await kindOf(world.system.rootKey),
      noBody: await kindOf(token, { workspaceId: 1 }),
    }).toEqual({
      own: "issued",
      elsewhere: "policy_not_found",
      otherPolicy: "policy_not_found",
      namedPath: "policy_not_found",
      otherWorkspace: "policy_not_found",
      otherCluster: "forbidden",
      forTheKubernetesApi: "unauthorized",
      ofNoPod: "unauthorized",
      forged: "unauthorized",
      rootKey: "unauthorized",
      noBody: "invalid_input",
    });
    const left = await fresh.token();
    await fresh.remove();
    // The Kubernetes API caches token reviews for a few seconds; this token is new.
    expect(await kindOf(left)).toBe("unauthorized");
  });
});
