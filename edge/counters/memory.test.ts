import { expect, test } from "vitest";
import type { LimitCharge } from "./contract.ts";
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

test("the windows slide as the reference has it", async () => {
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

test("counters that weigh nothing any more are swept away", async () => {
  const clock = { ms: 0 };
  const store = new MemoryStore(() => clock.ms);
  const counters = new MemoryCounters(store);
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: `${i}` })] });
  expect(store.limits.size).toBe(100);
  clock.ms = 120_000;
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: "last" })] });
  expect(store.limits.size).toBe(1);
});

test("it keeps no more counters than it may", async () => {
  const store = new MemoryStore(() => 0, 10);
  const counters = new MemoryCounters(store);
  for (let i = 0; i < 100; i++) await counters.consume({ limits: [aCharge({ identifier: `${i}` })] });
  expect(store.limits.size).toBe(10);
  expect(store.limits.has("ws_1:name:1:n:60000:99")).toBe(true);
});
