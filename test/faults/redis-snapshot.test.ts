import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import { openLine } from "./line.ts";
import { openSystem } from "./system.ts";

/*
 * Redis restarts from a snapshot taken before keys were disabled. A gate that knows the changes reads those keys continuously from the
 * restart on: the old records must not be used on any connection, whichever reconnects first.
 */

const KEYS = 15;

test.each([
  { name: "while a relay makes a new projection", isRelayThere: true },
  { name: "while no relay is there", isRelayThere: false },
])("keys disabled after the Redis snapshot are never accepted $name", async ({ isRelayThere }) => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  await waitFor("the api-server to be ready", () => api.isReady());
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const gate = await system.gate(api, { apiId });
  const keys: TestKey[] = [];
  for (let i = 0; i < KEYS; i++) keys.push(await api.data("keys.createKey", { apiId }));
  const last: TestKey = await api.data("keys.createKey", { apiId });
  const good: TestKey = await api.data("keys.createKey", { apiId });
  for (const { key } of [...keys, last, good]) {
    await waitFor("the gate to let it in", async () => (await gate.status(key)) === 200);
  }

  await system.raw.save();
  for (const { keyId } of [...keys, last]) await api.data("keys.updateKey", { keyId, enabled: false });
  // Only the last key is verified, so that the gate knows that the others changed but not how.
  await waitFor("the gate to have heard", async () => (await gate.status(last.key)) === 401);
  if (!isRelayThere) await api.server.close();
  await system.redis.kill("SIGKILL");
  const restarted = system.redis.restart({ signal: "SIGKILL" });

  const seen = new Map<number, number>();
  const until = performance.now() + (isRelayThere ? 60_000 : 4_000);
  let refused = 0;
  for (let i = 0; performance.now() < until && refused < KEYS; i++) {
    const status = await gate.status(keys[i % KEYS]?.key ?? "");
    seen.set(status, (seen.get(status) ?? 0) + 1);
    refused = status === 401 ? refused + 1 : 0;
  }
  await restarted;
  expect([...seen.keys()].filter((status) => status !== 401 && status !== 503)).toEqual([]);
  expect(await gate.status(good.key)).toBe(200);
  if (isRelayThere) expect(refused).toBe(KEYS);
  else {
    expect(await gate.source()).toEqual({ usable: false, reason: "the store has gone back in time" });
    expect(await gate.metrics()).toMatch(/postern_sidecar_source_usable 0/);
  }
});

/* A gate that has just started has no state to compare with Redis, and neither has one that was disconnected before the snapshot. */
test.each([
  { name: "when the relay is there", relay: "there" },
  { name: "when the relay stands still while the gate connects", relay: "paused" },
  { name: "when the relay has begun before the gate connects", relay: "first" },
  { name: "while no relay is there", relay: "away" },
] as const)(
  "gate started after a Redis rollback accepts no disabled key $name",
  async ({ relay }) => {
    const system = await openSystem({ ownRedis: true });
    const api = await system.spawnApi();
    await waitFor("the api-server to be whole", () => api.isComplete());
    const { apiId } = await api.data("apis.createApi", { name: "payments" });
    const before = await system.gate(api, { apiId });
    const keys: TestKey[] = [];
    for (let i = 0; i < KEYS; i++) keys.push(await api.data("keys.createKey", { apiId }));
    const good: TestKey = await api.data("keys.createKey", { apiId });
    for (const { key } of [...keys, good]) {
      await waitFor("the gate to let it in", async () => (await before.status(key)) === 200);
    }
    await system.raw.save();
    for (const { keyId } of keys) await api.data("keys.updateKey", { keyId, enabled: false });
    for (const { key } of keys) await waitFor("the gate to have heard", async () => (await before.status(key)) === 401);
    await before.close();

    const stateKey = `${system.prefix}:${await system.workspaceId()}:state:{${await system.workspaceId()}}`;
    const projectionId = () => system.raw.hget(stateKey, "projectionId");
    // The relay may replace the projection as soon as Redis is back.
    const snapshotId = await projectionId();
    if (relay === "paused") api.process.kill("SIGSTOP");
    if (relay === "away") await api.process.stop();
    await system.redis.kill("SIGKILL");
    const restarted = system.redis.restart({ signal: "SIGKILL" });
    if (relay === "first") {
      await restarted;
      await waitFor("another projection", async () => ((await projectionId()) ?? snapshotId) !== snapshotId);
    }
    const gate = await system.gate(api, { apiId, policyId: before.policyId });

    const seen = new Set<number>();
    const hammer = async (ms: number): Promise<void> => {
      const until = performance.now() + ms;
      for (let i = 0, refused = 0; performance.now() < until && refused < KEYS; i++) {
        const status = await gate.status(keys[i % KEYS]?.key ?? "");
        seen.add(status);
        refused = status === 401 ? refused + 1 : 0;
      }
    };
    if (relay === "paused" || relay === "away") {
      await restarted;
      await hammer(3_000);
      expect([...seen]).toEqual([503]);
      expect(await gate.source()).toMatchObject({
        usable: false,
        reason: expect.stringMatching(/no api-server has checked/),
      });
    }
    if (relay === "paused") api.process.kill("SIGCONT");
    await hammer(relay === "away" ? 1_000 : 20_000);
    await restarted;
    expect([...seen].filter((status) => status !== 401 && status !== 503)).toEqual([]);
    if (relay !== "away") {
      expect(seen).toContain(401);
      await waitFor("the other key to be let in", async () => (await gate.status(good.key)) === 200);
    }
  },
  60_000,
);

test("gate disconnected since before a Redis rollback accepts no disabled key", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.spawnApi();
  await waitFor("the api-server to be whole", () => api.isComplete());
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const line = await openLine(system.redisUrl);
  onTestFinished(() => line.close());
  const gate = await system.gate(api, { apiId, redisUrl: line.url });
  const keys: TestKey[] = [];
  line.cut();
  for (let i = 0; i < KEYS; i++) keys.push(await api.data("keys.createKey", { apiId }));
  await sleep(1_500);
  await system.raw.save();
  for (const { keyId } of keys) await api.data("keys.updateKey", { keyId, enabled: false });
  await sleep(1_500);
  api.process.kill("SIGSTOP");
  await system.redis.restart({ signal: "SIGKILL" });
  line.mend();
  const seen = new Set<number>();
  const hammer = async (ms: number): Promise<void> => {
    for (const until = performance.now() + ms; performance.now() < until; ) {
      for (const { key } of keys) seen.add(await gate.status(key));
    }
  };
  await hammer(3_000);
  expect([...seen]).toEqual([503]);
  api.process.kill("SIGCONT");
  await waitFor("the keys to be known", async () => (await gate.status(keys[0]?.key ?? "")) === 401);
  await hammer(1_000);
  expect([...seen].toSorted()).toEqual([401, 503]);
}, 60_000);
