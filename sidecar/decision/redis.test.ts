import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import {
  aPolicy,
  aRule,
  call,
  kindOf,
  openGate,
  Records,
  type TestGate,
  WORKSPACE,
  waitFor,
  withKey,
} from "../../test/harness/gate.ts";
import { createTestRedis, type OwnRedis, startOwnRedis, type TestRedis } from "../../test/harness/redis.ts";

const HOUR = 3_600_000;
const limited = (limit: number, accuracy: "strict" | "local" = "strict") => ({
  scope: { kind: "name", name: "writes" } as const,
  identifier: "key" as const,
  limit,
  durationMs: HOUR,
  cost: 1,
  accuracy,
});
const POLICY_CHANGES = { rules: [aRule({ path: { prefix: "/limited" }, ratelimits: [limited(3)] })] };

const ask = (gate: TestGate, key: string, path = "/") => call(gate.port, { path, ...withKey(key) });
const status = async (gate: TestGate, key: string, path = "/") => (await ask(gate, key, path)).status;

const isThere = async (edge: Edge): Promise<true> => {
  await edge.ping();
  return true;
};

/** Opens an edge and waits until it is writable. */
async function openEdge(url: string, prefix: string): Promise<Edge> {
  const edge = await openRedisEdge({ url, prefix, clientName: "sidecar-test" });
  await waitFor("the edge to be connected", () => isThere(edge));
  return edge;
}

describe("gates that share Redis", () => {
  let redis: TestRedis;
  beforeEach(async () => {
    redis = await createTestRedis();
  });
  afterEach(() => redis.close());

  test("two gates share counters, enforce a change immediately and deliver their events", async () => {
    const [here, there] = [await openEdge(redis.url, redis.prefix), await openEdge(redis.url, redis.prefix)];
    const gate = await openGate({ edge: here, policy: POLICY_CHANGES });
    const other = await openGate({ edge: there, policy: POLICY_CHANGES, config: { podId: "pod-2" } });
    const key = await gate.records.putKey({ keyId: "key_redis" });
    const codes = [];
    for (const pod of [gate, other, gate, other]) codes.push(await status(pod, key, "/limited"));
    expect(codes).toEqual([200, 200, 200, 429]);

    await gate.records.putKey({ keyId: "key_redis", enabled: false }, key);
    await waitFor(
      "both to refuse",
      async () => String([await status(gate, key), await status(other, key)]) === "401,401",
    );

    await Promise.all([here.sink.flush(), there.sink.flush()]);
    const events: UsageEvent[] = [];
    await here.events.take(WORKSPACE, async (taken) => void events.push(...taken));
    const outcomes = events.map((event) => (event.type === "verification" ? event.outcome : ""));
    expect(outcomes.filter((outcome) => outcome !== "DISABLED").sort()).toEqual(
      expect.arrayContaining(["RATE_LIMITED", "VALID", "VALID", "VALID"]),
    );
    expect(outcomes).toContain("DISABLED");
    await gate.close();
    await other.close();
  });

  test("each gate counts local limits separately", async () => {
    const edge = await openEdge(redis.url, redis.prefix);
    const rules = [aRule({ ratelimits: [limited(2, "local")] })];
    const gate = await openGate({ edge, policy: { rules } });
    const key = await gate.records.putKey();
    expect([await status(gate, key), await status(gate, key), await status(gate, key)]).toEqual([200, 200, 429]);
    await gate.close();
  });
});

describe("Redis is unavailable", () => {
  let redis: OwnRedis;
  let gate: TestGate;
  beforeEach(async () => {
    redis = await startOwnRedis();
  });
  afterEach(async () => {
    await gate.close();
    await redis.stop();
  });

  test("gate without Redis serves cached keys, rejects uncached keys with 503 and stays ready", async () => {
    gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: POLICY_CHANGES });
    const key = await gate.records.putKey();
    const poor = await gate.records.putKey({ limited: true });
    expect([await status(gate, key), await status(gate, poor)]).toEqual([200, 503]);
    await redis.kill();
    await waitFor("the limits to be decided in the pod", async () => {
      await ask(gate, key, "/limited");
      return /counter_failures_total\{kind="limits"\} [1-9]/.test(await gate.metrics());
    });
    expect(await status(gate, key)).toBe(200);
    const unknown = await ask(gate, "unknown");
    expect([unknown.status, unknown.headers["retry-after"], kindOf(unknown)]).toEqual([
      503,
      "1",
      "verification_unavailable",
    ]);
    expect(await status(gate, poor)).toBe(503);
    const codes = [];
    for (let i = 0; i < 4; i++) codes.push(await status(gate, key, "/limited"));
    expect(codes.at(-1)).toBe(429);
    expect((await gate.readyz()).status).toBe(200);
  });

  test.each([
    { onCounterFailure: "Deny", expected: 503 },
    { onCounterFailure: "Allow", expected: 200 },
  ] as const)(
    "onCounterFailure $onCounterFailure decides requests with limits while Redis is unavailable",
    async ({ onCounterFailure, expected }) => {
      gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: { ...POLICY_CHANGES, onCounterFailure } });
      const key = await gate.records.putKey();
      expect(await status(gate, key, "/limited")).toBe(200);
      await redis.kill();
      await waitFor("the policy's word", async () => {
        const codes = [];
        for (let i = 0; i < 5; i++) codes.push(await status(gate, key, "/limited"));
        return codes.every((code) => code === expected);
      });
    },
  );

  test("onCounterFailure Local lets two gates admit at most three times the limit per window", async () => {
    gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: POLICY_CHANGES });
    const other = await openGate({
      edge: await openEdge(redis.url, "f:"),
      policy: POLICY_CHANGES,
      config: { podId: "pod-2" },
    });
    const key = await gate.records.putKey();
    const admitted = async () => {
      let passed = 0;
      for (let i = 0; i < 6; i++)
        for (const pod of [gate, other]) passed += Number((await status(pod, key, "/limited")) === 200);
      return passed;
    };
    expect(await admitted()).toBe(3);
    await redis.kill();
    // A rejection that a pod has cached stays in effect.
    expect((await admitted()) + (await admitted())).toBeLessThanOrEqual(6);
    const another = await ask(gate, key, "/limited");
    expect(another.status).toBe(429);
    await other.close();
  });

  test("gate admits requests without readable credits when the policy allows it", async () => {
    gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: { onCreditFailure: "Allow" } });
    const key = await gate.records.putKey({ keyId: "key_rich", limited: true });
    await gate.edge.credits.load([
      { ref: { workspaceId: WORKSPACE, keyId: "key_rich" }, counter: { rev: 1, granted: 5, spent: 0 } },
    ]);
    expect(await status(gate, key)).toBe(200);
    await redis.kill();
    await waitFor("credits to be unknown", async () => {
      expect(await status(gate, key)).toBe(200);
      return /counter_failures_total\{kind="credits"\} [1-9]/.test(await gate.metrics());
    });
  });

  test("slow Redis delays gate requests only up to a timeout", async () => {
    gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: POLICY_CHANGES });
    const key = await gate.records.putKey();
    expect(await status(gate, key, "/limited")).toBe(200);
    process.kill(redis.pid, "SIGSTOP");
    const from = performance.now();
    expect(await status(gate, key, "/limited")).toBe(200);
    expect(performance.now() - from).toBeLessThan(1_000);
    process.kill(redis.pid, "SIGCONT");
  });

  test("gate uses an emptied Redis again after a new projection begins", async () => {
    gate = await openGate({ edge: await openEdge(redis.url, "f:"), policy: POLICY_CHANGES });
    const key = await gate.records.putKey();
    expect(await status(gate, key)).toBe(200);
    await redis.restart();
    await waitFor("the edge to be connected", () => isThere(gate.edge));
    await gate.records.begin("projection-2");
    await gate.records.putPolicy(
      aPolicy({ ...POLICY_CHANGES, rules: [aRule({ access: "Anonymous", path: { prefix: "/new" } })] }),
    );
    const fresh = await gate.records.putKey();
    await gate.records.complete();
    await waitFor("the new policy", async () => (await call(gate.port, { path: "/new" })).status === 200, {
      deadlineMs: 20_000,
    });
    expect(await status(gate, fresh)).toBe(200);
    await waitFor("the key that is not there any more to be refused", async () => (await status(gate, key)) === 401);
  });
});

test("gate that was started without Redis becomes ready as soon as Redis is available", async () => {
  const redis = await startOwnRedis();
  const prefix = "f:";
  const writer = await openEdge(redis.url, prefix);
  await redis.kill();
  const edge = await openRedisEdge({ url: redis.url, prefix, clientName: "sidecar-test" });
  const gate = await openGate({ edge, ready: false, written: false });
  expect([(await call(gate.port)).status, (await gate.readyz()).status]).toEqual([503, 503]);
  await redis.restart();
  await waitFor("the writer to be connected", () => isThere(writer));
  const records = new Records(writer);
  await records.begin();
  await records.putPolicy(aPolicy());
  const key = await records.putKey();
  await records.complete();
  await waitFor("the gate to serve", async () => (await status(gate, key)) === 200, { deadlineMs: 20_000 });
  await gate.close();
  await writer.close();
  await redis.stop();
});
