import { beforeEach, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import type { Pod } from "./pod.ts";
import { type LocalApi, openSystem, type System } from "./system.ts";

/* Credits of a real api-server while pods spend them. `spent` counts acknowledged spending, which must equal the counter exactly. */

let system: System;
let api: LocalApi;
let pods: Pod[];
let apiId: string;

beforeEach(async () => {
  system = await openSystem({ ownRedis: true });
  api = await system.api();
  await waitFor("the api-server to be whole", () => api.isComplete());
  pods = await Promise.all([1, 2, 3].map(() => system.pod()));
  ({ apiId } = await api.data("apis.createApi", { name: "payments" }));
});

async function createKey(remaining: number): Promise<TestKey> {
  const created = await api.data("keys.createKey", { apiId, credits: { remaining } });
  // The first spender requests loading of the counter.
  await waitFor("the counter", async () => (await spendOnce(created.keyId, 0)) !== "unknown");
  return created;
}

async function spendOnce(keyId: string, cost = 1, pod = pods[0]): Promise<string> {
  const { credits } = (await pod?.spend(keyId, cost)) ?? {};
  return credits?.status ?? "none";
}

const remainingOf = async (key: string): Promise<number> =>
  (await api.data("keys.verifyKey", { key, credits: { cost: 0 } })).credits;

/** Makes all pods spend from the key until stopped. */
function startSpending(keyId: string): { spent(): number; stop(): Promise<void> } {
  let spent = 0;
  let isStopped = false;
  const spenders = pods.map(async (pod) => {
    while (!isStopped) if ((await spendOnce(keyId, 1, pod)) === "spent") spent += 1;
  });
  return {
    spent: () => spent,
    stop: async () => {
      isStopped = true;
      await Promise.all(spenders);
    },
  };
}

test("three pods and the API together spend exactly the credits of a key", async () => {
  const { keyId, key } = await createKey(300);
  const statuses: string[] = [];
  const byPods = pods.map(async (pod) => {
    for (let i = 0; i < 150; i++) statuses.push(await spendOnce(keyId, 1, pod));
  });
  const byApi = Promise.all(
    Array.from({ length: 50 }, async () => {
      const { code } = await api.data("keys.verifyKey", { key });
      statuses.push(code === "VALID" ? "spent" : code);
    }),
  );
  await Promise.all([...byPods, byApi]);
  expect(statuses.filter((status) => status === "spent")).toHaveLength(300);
  expect(await remainingOf(key)).toBe(0);
  await waitFor("the write-behind", async () => {
    const { rows } = await system.db.query<{ spent: number }>("select spent from key_credits where key_id = $1", [
      keyId,
    ]);
    return rows[0]?.spent === 300;
  });
});

test("credits set during spending apply from the next verification on, without overspending", async () => {
  const { keyId, key } = await createKey(1_000_000);
  const spending = startSpending(keyId);
  try {
    for (const remaining of [50_000, 70_000, 40_000, 90_000, 60_000]) {
      const before = spending.spent();
      await waitFor("pods to spend", () => spending.spent() > before + 20);
      const atCall = spending.spent();
      await api.data("keys.updateKey", { keyId, credits: { remaining } });
      const left = await remainingOf(key);
      const atRead = spending.spent();
      expect(left).toBeLessThanOrEqual(remaining);
      // Each pod may have one unacknowledged spending.
      expect(left).toBeGreaterThanOrEqual(remaining - (atRead - atCall) - pods.length);
    }
  } finally {
    await spending.stop();
  }
  // Exact comparison while idle: credits are set once more and then spent one at a time.
  await api.data("keys.updateKey", { keyId, credits: { remaining: 100 } });
  const again = startSpending(keyId);
  await waitFor("all to be spent", async () => (await remainingOf(key)) === 0);
  await again.stop();
  expect(again.spent()).toBe(100);
});

test("credits set repeatedly to values near zero never become negative", async () => {
  const { keyId, key } = await createKey(10);
  const spending = startSpending(keyId);
  let granted = 10;
  try {
    for (let i = 0; i < 20; i++) {
      await waitFor("nothing to be left", async () => {
        const left = await remainingOf(key);
        expect(left).toBeGreaterThanOrEqual(0);
        return left === 0;
      });
      await api.data("keys.updateKey", { keyId, credits: { remaining: 10 } });
      granted += 10;
    }
    await waitFor("nothing to be left", async () => (await remainingOf(key)) === 0);
  } finally {
    await spending.stop();
  }
  expect(spending.spent()).toBe(granted);
});

test("key made unlimited during spending loses its counter, and gets a new one when limited again", async () => {
  const { keyId, key } = await createKey(1000);
  const spending = startSpending(keyId);
  try {
    await waitFor("pods to spend", () => spending.spent() > 20);
    await api.data("keys.updateKey", { keyId, credits: null });
    expect((await api.data("keys.verifyKey", { key })).credits).toBeUndefined();
  } finally {
    await spending.stop();
  }
  await api.data("keys.updateKey", { keyId, credits: { remaining: 3 } });
  expect(await remainingOf(key)).toBe(3);
});

test("credit counter is loaded again after a crash between suspend and reopen", async () => {
  const { keyId, key } = await createKey(10);
  await api.edge.credits.suspend([{ workspaceId: await system.workspaceId(), keyId }]);
  await waitFor("the pod to spend again", async () => (await spendOnce(keyId)) === "spent");
  expect(await remainingOf(key)).toBe(9);
});
