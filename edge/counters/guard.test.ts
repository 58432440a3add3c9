import { expect, test } from "vitest";
import { type Consumed, CountersUnavailable } from "./contract.ts";
import { Breaker, GuardedCounters } from "./guard.ts";
import type { StrictCounters } from "./strict.ts";

const countersThat = (consume: () => Promise<Consumed>): StrictCounters => ({ consume, close: async () => {} });
const never = () => new Promise<Consumed>(() => {});

test("who is not answered in time is told so", async () => {
  const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 5, extraPoll: false });
  await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
});

test("a store that mostly fails is not asked for a second, and then by one", () => {
  const breaker = new Breaker();
  let nowMs = 1_000;
  for (let i = 0; i < 19; i++) breaker.failed(nowMs);
  expect(breaker.admits(nowMs)).toBe(true);
  breaker.failed(nowMs);
  expect(breaker.admits(nowMs)).toBe(false);
  nowMs += 1_000;
  expect([breaker.admits(nowMs), breaker.admits(nowMs)]).toEqual([true, false]);
  breaker.failed(nowMs);
  expect(breaker.admits(nowMs + 999)).toBe(false);
  expect(breaker.admits(nowMs + 1_000)).toBe(true);
  breaker.succeeded(nowMs + 1_000);
  expect([breaker.admits(nowMs + 1_001), breaker.admits(nowMs + 1_001)]).toEqual([true, true]);
});

test("single failures among many successes change nothing, and old ones are forgotten", () => {
  const breaker = new Breaker();
  for (let i = 0; i < 100; i++) {
    breaker.succeeded(i);
    if (i % 3 === 0) breaker.failed(i);
  }
  expect(breaker.admits(100)).toBe(true);
  const old = new Breaker();
  for (let i = 0; i < 19; i++) old.failed(0);
  for (let i = 0; i < 5; i++) old.failed(11_000);
  expect(old.admits(11_000)).toBe(true);
});

test("while it is open every call fails at once", async () => {
  let asked = 0;
  const failing = countersThat(() => {
    asked += 1;
    return Promise.reject(new CountersUnavailable("lost"));
  });
  const guarded = new GuardedCounters(failing, { timeoutMs: 1_000, extraPoll: false });
  for (let i = 0; i < 30; i++)
    await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
  expect(asked).toBe(20);
});
