import { beforeEach, describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import type { Pod } from "./pod.ts";
import { type LocalApi, openSystem, type System } from "./system.ts";

/* Redis loses its data, goes back in time or becomes unreachable under a running api-server and a pod. Postgres is the source of truth. */

let system: System;
let api: LocalApi;
let pod: Pod;
let workspaceId: string;
let apiId: string;

beforeEach(async () => {
  // Snapshots are saved only by the tests and loaded at a restart.
  system = await openSystem({ ownRedis: true });
  api = await system.api();
  await waitFor("the api-server to be whole", () => api.isComplete());
  [pod, workspaceId] = [await system.pod(), await system.workspaceId()];
  ({ apiId } = await api.data("apis.createApi", { name: "payments" }));
});

const createKey = (options: object = {}): Promise<TestKey> => api.data("keys.createKey", { apiId, ...options });

/** Resolves with the pod's cached key when the condition holds. */
function podKnows(key: TestKey, holds: (name: string | undefined) => boolean = () => true) {
  return waitFor("the pod to know the key", async () => {
    const found = await pod.projection.findKey(workspaceId, hashKey(key.key));
    return found.status === "found" && found.stale !== true && holds(found.value.key.name) ? found.value : undefined;
  });
}

/** Spends one at a time until `count` succeeded. Retries while a counter is not loaded, as a client would. */
async function spend(keyId: string, count: number): Promise<void> {
  for (let spent = 0; spent < count; ) {
    spent += await waitFor("credits", async () => {
      const { credits } = await pod.spend(keyId);
      if (credits?.status === "refused") throw new Error("refused");
      return credits?.status === "spent" ? 1 : undefined;
    });
  }
}

/** Spends until a denial and returns the number of successes. */
async function spendAll(keyId: string): Promise<number> {
  for (let spent = 0; ; ) {
    const status = await waitFor("an answer", async () => {
      const { credits } = await pod.spend(keyId);
      return credits?.status === "unknown" ? undefined : credits?.status;
    });
    if (status === "refused") return spent;
    spent += 1;
  }
}

async function storedSpent(keyId: string): Promise<number> {
  const { rows } = await system.db.query<{ spent: number }>("select spent from key_credits where key_id = $1", [keyId]);
  return rows[0]?.spent ?? -1;
}

async function projectionId(): Promise<string> {
  return waitFor("a complete projection", async () => {
    const state = await api.edge.writer.state();
    return state.complete ? state.projectionId : undefined;
  });
}

const remainingOf = async ({ key }: TestKey): Promise<number> =>
  (await api.data("keys.verifyKey", { key, credits: { cost: 0 } })).credits;

describe("FLUSHALL", () => {
  test("FLUSHALL loses at most the last second of spending before recovery", async () => {
    const key = await createKey({ name: "flushed", credits: { remaining: 100 } });
    await podKnows(key);
    await spend(key.keyId, 40);
    await waitFor("the write-behind", async () => (await storedSpent(key.keyId)) === 40, { deadlineMs: 2000 });
    const before = await projectionId();
    await spend(key.keyId, 7);
    await system.raw.flushall();

    await waitFor("another projection", async () => (await projectionId()) !== before);
    await podKnows(key, (name) => name === "flushed");
    const remaining = await remainingOf(key);
    expect(remaining).toBeGreaterThanOrEqual(53);
    expect(remaining).toBeLessThanOrEqual(60);
    expect(await spendAll(key.keyId)).toBe(remaining);
    expect(await remainingOf(key)).toBe(0);
  });

  test("changes right after FLUSHALL are enforced", async () => {
    const key = await createKey({ name: "before" });
    await podKnows(key);
    await system.raw.flushall();
    await api.data("keys.updateKey", { keyId: key.keyId, name: "after" });
    await podKnows(key, (name) => name === "after");
  });
});

describe("Redis restarted from an old snapshot", () => {
  test("old Redis snapshot is rejected and spent credits are not granted again", async () => {
    const [key, deleted] = [await createKey({ name: "old", credits: { remaining: 100 } }), await createKey()];
    await podKnows(key);
    await podKnows(deleted);
    await spend(key.keyId, 10);
    await system.raw.save();
    const before = await projectionId();

    await spend(key.keyId, 50);
    await api.data("keys.updateKey", { keyId: key.keyId, name: "new" });
    await api.data("keys.deleteKey", { keyId: deleted.keyId, permanent: true });
    await waitFor("the write-behind", async () => (await storedSpent(key.keyId)) === 60);
    await system.redis.restart({ signal: "SIGKILL" });

    await waitFor("another projection", async () => (await projectionId()) !== before);
    await podKnows(key, (name) => name === "new");
    await waitFor("the pod to know nothing of the deleted key", async () => {
      const found = await pod.projection.findKey(workspaceId, hashKey(deleted.key));
      return found.status === "absent";
    });
    expect(await remainingOf(key)).toBe(40);
    expect(await spendAll(key.keyId)).toBe(40);
  });

  test("credits set after the Redis snapshot are used", async () => {
    const key = await createKey({ credits: { remaining: 100 } });
    await podKnows(key);
    await spend(key.keyId, 10);
    await system.raw.save();
    const before = await projectionId();
    await api.data("keys.updateKey", { keyId: key.keyId, credits: { remaining: 5 } });
    await system.redis.restart({ signal: "SIGKILL" });
    await waitFor("another projection", async () => (await projectionId()) !== before);
    expect(await remainingOf(key)).toBe(5);
    expect(await spendAll(key.keyId)).toBe(5);
  });
});

describe("Redis is lost after the last api-server stopped", () => {
  test.each([
    {
      args: ["--appendonly", "yes"],
      left: 50,
      what: "with an append-only file nothing of what pods spent since is given again",
    },
    { args: [], left: 90, what: "without one all of it is, and no more than that" },
  ])("credits have the expected value after api-server and Redis restart: $what", async ({ args, left }) => {
    const before = await projectionId();
    await system.redis.restart({ args });
    await waitFor("another projection", async () => (await projectionId()) !== before);
    const key = await createKey({ credits: { remaining: 100 } });
    await podKnows(key);
    await spend(key.keyId, 10);
    await waitFor("the write-behind", async () => (await storedSpent(key.keyId)) === 10);
    await api.server.close();
    await spend(key.keyId, 40);
    expect(await storedSpent(key.keyId)).toBe(10);
    await system.redis.restart({ args, signal: "SIGKILL" });

    api = await system.api();
    await waitFor("everything to be projected again", () => api.isComplete());
    expect(await remainingOf(key)).toBe(left);
    expect(await spendAll(key.keyId)).toBe(left);
  });
});

describe("Redis is unreachable", () => {
  test("api-server without Redis verifies keys, counts limits locally, denies limited credits and stays ready", async () => {
    const [plain, counted] = [await createKey({ name: "plain" }), await createKey({ credits: { remaining: 9 } })];
    const limited = await createKey({
      ratelimits: [{ name: "requests", limit: 2, duration: 3_600_000, autoApply: true }],
    });
    await podKnows(plain);
    await system.redis.kill("SIGKILL");

    expect((await api.data("keys.verifyKey", { key: plain.key })).code).toBe("VALID");
    const codes: string[] = [];
    for (let i = 0; i < 3; i++) codes.push((await api.data("keys.verifyKey", { key: limited.key })).code);
    expect(codes).toEqual(["VALID", "VALID", "RATE_LIMITED"]);
    const refused = await api.call("keys.verifyKey", { key: counted.key });
    expect(refused.status).toBe(500);
    expect(refused.body.error.type).toMatch(/\/errors\/service_unavailable$/);
    await api.data("keys.updateKey", { keyId: plain.keyId, name: "changed" });
    expect((await api.data("keys.verifyKey", { key: plain.key })).name).toBe("changed");
    expect(await api.isReady()).toBe(true);
    await waitFor("it to say so", async () => (await api.degradations()).includes("redis_unavailable"));

    await system.redis.restart();
    await podKnows(plain, (name) => name === "changed");
    await waitFor("it to be whole again", () => api.isComplete());
    expect(await remainingOf(counted)).toBe(9);
  });

  test("API rejects setting credits while Redis is unavailable, because Redis may hold an open counter", async () => {
    const key = await createKey({ credits: { remaining: 9 } });
    expect(await remainingOf(key)).toBe(9);
    await system.redis.kill("SIGKILL");
    const reply = await api.call("keys.updateKey", { keyId: key.keyId, credits: { remaining: 1000 } });
    expect(reply.status).toBe(500);
    await system.redis.restart();
    await waitFor("it to be whole again", () => api.isComplete());
    await waitFor("the number of before", async () => (await remainingOf(key)) === 9);
  });
});
