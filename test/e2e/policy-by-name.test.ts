import { pino } from "pino";
import { expect, test } from "vitest";
import { start } from "../../api-server/start.ts";
import { policyBody } from "../../api-server/test/resources.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { call, startApp, withKey } from "../harness/gate.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { createTestRedis } from "../harness/redis.ts";
import { isReady, spawnUnready } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

const ROOT_KEY = "root_of_the_test_of_names_0123456789";

/** Starts an api-server on a real Postgres and Redis. */
async function openSystem(closers: AsyncDisposableStack) {
  const database = closers.adopt(await createTestDatabase(), (one) => one.drop());
  const redis = closers.adopt(await createTestRedis(), (one) => one.close());
  const prefix = redis.prefix.replace(/:$/, "");
  const edge = closers.adopt(await openRedisEdge({ url: redis.url, prefix, clientName: "test" }), (one) => one.close());
  const logger = pino({ level: process.env.TEST_LOG ?? "silent" }, pino.destination(2));
  const options = { databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, rootKey: ROOT_KEY, logger };
  const server = closers.adopt(await start(options), (one) => one.close());
  const { workspaceId } = await server.devRootKey(ROOT_KEY);
  const ask = async (procedure: string, body: object) => {
    const response = await fetch(`${server.url}/v2/${procedure}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ROOT_KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { data, error } = (await response.json()) as { data?: Record<string, string>; error?: unknown };
    if (data === undefined) throw new Error(`${procedure}: ${JSON.stringify(error)}`);
    return data;
  };
  return { env: { REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: prefix, POSTERN_WORKSPACE: workspaceId }, ask };
}

async function startGate(env: Record<string, string>) {
  const gate = await spawnUnready(env);
  return {
    stop: () => gate.process.stop(),
    log: () => gate.process.stderr(),
    status: async (key: string) => (await call(gate.port, withKey(key))).status,
    isReady: () => isReady(gate),
  };
}

test("gate responds 503 until the policy of the given name exists, and then enforces it, even after it is recreated", async () => {
  await using closers = new AsyncDisposableStack();
  const { env, ask } = await openSystem(closers);
  const app = closers.adopt(await startApp(), (one) => one.close());
  const { apiId = "" } = await ask("apis.createApi", { name: "orders" });
  const { key = "" } = await ask("keys.createKey", { apiId });
  const gate = closers.adopt(
    await startGate({ ...env, POSTERN_POLICY: "main/shop/orders", POSTERN_UPSTREAM: app.url }),
    async (one) => void (await one.stop()),
  );
  expect(await gate.isReady()).toBe(false);
  expect(await gate.status(key)).toBe(503);

  // Policies of another name do not match.
  await ask("managed.applyObject", policyBody(apiId, "other"));
  expect(await gate.status(key)).toBe(503);
  expect(await gate.isReady()).toBe(false);

  const { manager, kind, spec } = policyBody(apiId, "orders");
  await ask("managed.applyObject", { manager, kind, spec });
  await waitFor("the gate to be ready", gate.isReady);
  const lines = gate.log().split("\n");
  expect(lines.find((line) => line.includes("policy in force"))).toContain('"policy":"main/shop/orders"');
  expect(await gate.status(key)).toBe(200);
  expect(await gate.status("wrong")).toBe(401);

  // Deletes and recreates the policy: the gate follows the new one without a restart.
  await ask("managed.deleteObject", { manager, kind });
  const { apiId: next = "" } = await ask("apis.createApi", { name: "next" });
  await ask("managed.applyObject", policyBody(next, "orders"));
  const { key: nextKey = "" } = await ask("keys.createKey", { apiId: next });
  await waitFor("the key of the new policy's API to be accepted", async () => (await gate.status(nextKey)) === 200);
  expect(await gate.status(key)).toBe(401);
}, 60_000);

test.each(["shop/orders", "orders", "main/shop/orders/x", "main/shop/", "pol_", "pol_a/b"])(
  "gate rejects the impossible policy name %j at startup",
  async (policy) => {
    const child = await startProcess(process.execPath, [PROGRAM, "sidecar", "--policy", policy], {
      env: { REDIS_URL: "redis://127.0.0.1:1", POSTERN_WORKSPACE: "ws_a", POSTERN_UPSTREAM: "http://127.0.0.1:1" },
    });
    expect((await child.exited).code).toBe(2);
    expect(child.stderr()).toContain(
      `invalid value ${JSON.stringify(policy)} for --policy: must be CLUSTER/NAMESPACE/NAME`,
    );
  },
);
