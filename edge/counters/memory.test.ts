import { describe, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { creditsKey } from "../credits/memory-counters.ts";
import { MemoryCounters, MemoryStore } from "./memory.ts";

const aCharge = (charge: Partial<LimitCharge> = {}): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: "n" },
  identifier: "alice",
  limit: 10,
  durationMs: 60_000,
  cost: 1,
  accuracy: "strict",
  ...charge,
});

test("memory counters match the sliding window example of api-v2.md section 9.1", async () => {
  const clock = { ms: 0 };
  const counters = new MemoryCounters(new MemoryStore(() => clock.ms));
  await counters.consume({ limits: [aCharge({ cost: 8 })] });
  clock.ms = 75_000;
  await counters.consume({ limits: [aCharge({ cost: 3 })] });
  expect(await counters.consume({ limits: [aCharge()] })).toMatchObject({ passed: true, limits: [{ remaining: 0 }] });
  expect(await counters.consume({ limits: [aCharge()] })).toMatchObject({ passed: false });
  clock.ms = 90_000;
  expect(await counters.consume({ limits: [aCharge()] })).toMatchObject({ passed: true, limits: [{ remaining: 1 }] });
});

test("memory counters remove expired entries", async () => {
  const clock = { ms: 0 };
  const store = new MemoryStore(() => clock.ms);
  const counters = new MemoryCounters(store);
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: `${i}` })] });
  expect(store.limits.size).toBe(100);
  clock.ms = 120_000;
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: "last" })] });
  expect(store.limits.size).toBe(1);
});

test("memory counters keep at most the configured number of entries", async () => {
  const store = new MemoryStore(() => 0, 10);
  const counters = new MemoryCounters(store);
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: `${i}` })] });
  expect(store.limits.size).toBe(10);
  expect(store.limits.has("ws_1:name:1:n:60000:99")).toBe(true);
});

test("dry run of memory counters includes the costs in its decision but consumes nothing", async () => {
  const counters = new MemoryCounters(new MemoryStore(() => 0));
  const credits = { workspaceId: "ws_1", keyId: "key_1", cost: 1 };
  const request = { limits: [aCharge({ cost: 6 }), aCharge({ identifier: "bob", limit: 5, cost: 6 })], credits };
  for (let i = 0; i < 2; i++) {
    const dry = await counters.consume(request, { dryRun: true });
    expect(dry).toMatchObject({ passed: false, limits: [{ passed: true, remaining: 10 }, { passed: false }] });
    expect(dry).not.toHaveProperty("credits");
  }
  await counters.consume({ limits: [aCharge({ cost: 6 })] }, { dryRun: true });
  expect(await counters.consume({ limits: [aCharge({ cost: 0 })] })).toMatchObject({ limits: [{ remaining: 10 }] });
});

describe("credits", () => {
  const aStore = (counter: { open: boolean; granted: number; spent: number }) => {
    const store = new MemoryStore(() => 0);
    store.credits.set(creditsKey("ws_1", "key_1"), { rev: 1, ...counter });
    const counters = new MemoryCounters(store);
    const spend = async (cost: number, keyId = "key_1", limit = 10) =>
      (await counters.consume({ limits: [aCharge({ limit })], credits: { workspaceId: "ws_1", keyId, cost } })).credits;
    return { store, spend };
  };

  test("memory counters spend the last credit and then deny; reading the credits spends none", async () => {
    const { store, spend } = aStore({ open: true, granted: 5, spent: 1 });
    expect(await spend(0)).toEqual({ status: "spent", remaining: 4 });
    expect(store.dirty.size).toBe(0);
    expect(await spend(5)).toEqual({ status: "refused", remaining: 4 });
    expect(await spend(3)).toEqual({ status: "spent", remaining: 1 });
    expect(await spend(1)).toEqual({ status: "spent", remaining: 0 });
    expect(await spend(1)).toEqual({ status: "refused", remaining: 0 });
    expect(store.dirty).toEqual(new Map([["ws_1", new Set(["key_1"])]]));
    expect(store.toLoad.size).toBe(0);
  });

  test("memory counters report credits but do not spend them after a limit denial", async () => {
    const { spend } = aStore({ open: true, granted: 5, spent: 7 });
    expect(await spend(1, "key_1", 0)).toEqual({ status: "unreached", remaining: 0 });
    expect(await spend(1, "key_2", 0)).toEqual({ status: "unreached", remaining: undefined });
  });

  test("a closed or missing credit counter makes credits unknown and requests that they be loaded", async () => {
    const { store, spend } = aStore({ open: false, granted: 5, spent: 0 });
    for (const keyId of ["key_1", "key_2"]) expect(await spend(1, keyId)).toEqual({ status: "unknown" });
    expect(store.toLoad).toEqual(new Map([["ws_1", new Set(["key_1", "key_2"])]]));
    expect(store.dirty.size).toBe(0);
  });
});
