import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import type { ConsumeRequest } from "./contract.ts";
import { DenialCache } from "./deny-memory.ts";
import { MemoryCounters, MemoryStore } from "./memory.ts";
import type { StrictCounters } from "./strict.ts";

const aCharge = (charge: Partial<LimitCharge> = {}): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: "n" },
  identifier: "alice",
  limit: 3,
  durationMs: 1_000,
  cost: 1,
  accuracy: "strict",
  ...charge,
});

/** Returns a denial cache in front of counters with a controlled clock, and counts the calls to the counters. */
function aMemory(max?: number) {
  const clock = { ms: 1_000_000 };
  const store = new MemoryStore(() => clock.ms);
  const inner = new MemoryCounters(store);
  let asked = 0;
  const counting: StrictCounters = {
    consume: (request, options) => {
      asked += 1;
      return inner.consume(request, options);
    },
    close: () => inner.close(),
  };
  const options = { monotonicMs: () => clock.ms, ...(max === undefined ? {} : { max }) };
  return { clock, store, inner, memory: new DenialCache(counting, options), asked: () => asked };
}

const step = fc.record({
  passMs: fc.oneof(fc.nat(50), fc.nat(1_500)),
  limits: fc.array(
    fc.record({
      identifier: fc.constantFrom("alice", "bob"),
      limit: fc.integer({ min: 0, max: 6 }),
      durationMs: fc.constantFrom(1_000, 1_700),
      cost: fc.nat(7),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  /** Another process consumes directly from the counters. */
  isForeign: fc.boolean(),
});

test("denial cache never denies a request that the counters would admit, and never admits one by itself", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, inner, memory } = aMemory();
      for (const { passMs, limits, isForeign } of steps) {
        clock.ms += passMs;
        const request: ConsumeRequest = { limits: limits.map((limit) => aCharge(limit)) };
        if (isForeign) {
          await inner.consume(request);
          continue;
        }
        const wouldPass = (await inner.consume(request, { dryRun: true })).passed;
        expect((await memory.consume(request)).passed).toBe(wouldPass);
      }
    }),
    { numRuns: 500 },
  );
});

test("denial cache repeats a denial without a Redis call until the charge could pass", async () => {
  const { clock, memory, asked } = aMemory();
  const request = { limits: [aCharge({ limit: 1 })] };
  await memory.consume(request);
  const refused = await memory.consume(request);
  const retryAtMs = refused.limits[0]?.retryAtMs ?? 0;
  expect(asked()).toBe(2);
  clock.ms = retryAtMs - 1;
  expect(await memory.consume(request)).toMatchObject({ passed: false, limits: [{ passed: false, retryAtMs }] });
  expect(asked()).toBe(2);
  clock.ms = retryAtMs;
  expect((await memory.consume(request)).passed).toBe(true);
  expect(asked()).toBe(3);
});

test("a cached denial reports the key's other limits and its credits unchanged", async () => {
  const { memory, asked } = aMemory();
  const credits = { workspaceId: "ws_1", keyId: "key_1", cost: 1 };
  const request = { limits: [aCharge({ limit: 0 }), aCharge({ identifier: "bob" })], credits };
  const refused = await memory.consume(request);
  expect(await memory.consume(request)).toEqual(refused);
  expect(asked()).toBe(1);
  await memory.consume({ ...request, credits: { ...credits, keyId: "key_2" } });
  expect(asked()).toBe(2);
});

test("denial cache does not deny a request if its limits passed in an earlier request that another limit denied", async () => {
  const { memory, asked } = aMemory();
  const passing = aCharge({ identifier: "bob" });
  await memory.consume({ limits: [aCharge({ limit: 0 }), passing] });
  expect(await memory.consume({ limits: [passing] })).toMatchObject({ passed: true, limits: [{ remaining: 2 }] });
  expect(asked()).toBe(2);
});

test("denial cache re-evaluates a denial without credits if the request has credits", async () => {
  const { memory, asked } = aMemory();
  const request = { limits: [aCharge({ limit: 0 })] };
  const credits = { workspaceId: "ws_1", keyId: "key_1", cost: 1 };
  await memory.consume(request);
  expect(await memory.consume({ ...request, credits })).toMatchObject({ credits: { status: "unreached" } });
  expect(asked()).toBe(2);
  expect(await memory.consume(request)).not.toHaveProperty("credits");
  expect(asked()).toBe(2);
});

test("cached denial that outlasts its window reports the end of the current window", async () => {
  const { clock, memory, asked } = aMemory();
  const request = { limits: [aCharge({ limit: 1 })] };
  await memory.consume(request);
  expect(await memory.consume(request)).toMatchObject({ limits: [{ resetMs: 1_001_000 }] });
  clock.ms = 1_001_000;
  expect(await memory.consume(request)).toMatchObject({ passed: false, limits: [{ resetMs: 1_002_000 }] });
  expect(asked()).toBe(2);
});

test("denial cache admits again after the Redis clock jumps back by hours", async () => {
  const store = { ms: 1_800_000_000_000 };
  const memory = new DenialCache(new MemoryCounters(new MemoryStore(() => store.ms)), { monotonicMs: () => 0 });
  const request = { limits: [aCharge({ limit: 1 })] };
  await memory.consume(request);
  expect(await memory.consume(request)).toMatchObject({ passed: false });
  store.ms -= 5 * 3_600_000;
  // The next response of the counters contains their time.
  await memory.consume({ limits: [aCharge({ identifier: "bob" })] });
  expect(await memory.consume(request)).toMatchObject({ passed: true });
  expect(await memory.consume(request)).toMatchObject({ passed: false });
});

test("a dry run bypasses the denial cache and consumes nothing", async () => {
  const { memory, asked } = aMemory();
  const request = { limits: [aCharge({ limit: 1 })] };
  for (let i = 0; i < 3; i++) expect((await memory.consume(request, { dryRun: true })).passed).toBe(true);
  expect(asked()).toBe(3);
  const refused = { limits: [aCharge({ limit: 0 })] };
  await memory.consume(refused);
  await memory.consume(refused, { dryRun: true });
  expect(asked()).toBe(5);
});

test("denial cache re-evaluates a denial after a change of limit or cost, or after forget()", async () => {
  const { memory, asked } = aMemory();
  const charge = aCharge({ limit: 0 });
  await memory.consume({ limits: [charge] });
  await memory.consume({ limits: [{ ...charge, limit: 5 }] });
  await memory.consume({ limits: [{ ...charge, cost: 2 }] });
  expect(asked()).toBe(3);
  memory.forget();
  await memory.consume({ limits: [charge] });
  expect(asked()).toBe(4);
});

test("denial cache has at most `max` entries", async () => {
  const { memory, asked } = aMemory(10);
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 100; i++) await memory.consume({ limits: [aCharge({ limit: 0, identifier: `${i}` })] });
  }
  expect(asked()).toBeGreaterThan(190);
});
