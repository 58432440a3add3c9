import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Consumed } from "../../core/charges.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { CountersUnavailable } from "./contract.ts";
import { Breaker, GuardedCounters } from "./guard.ts";
import type { Caller, ConsumeOptions, StrictCounters } from "./strict.ts";

const countersThat = (consume: () => Promise<Consumed>): StrictCounters => ({ consume, close: async () => {} });
const consumed: Consumed = { nowMs: 0, limits: [], passed: true };
const never = () => new Promise<Consumed>(() => {});

test("counter call fails after the response timeout", async () => {
  const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 5 });
  await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
});

test("counter circuit breaker opens for a second if most calls fail, and then sends one probe", () => {
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

test("counter circuit breaker stays closed with few failures and forgets old ones", () => {
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

describe("calls of the last 5 to 10 s", () => {
  const aBreaker = (successes: number, failures: number, nowMs = 0) => {
    const breaker = new Breaker();
    for (let i = 0; i < successes; i++) breaker.succeeded(nowMs);
    for (let i = 0; i < failures; i++) breaker.failed(nowMs);
    return breaker;
  };

  test("counter circuit breaker opens only when half of the recent calls failed", () => {
    expect(aBreaker(10, 10).admits(0)).toBe(false);
    expect(aBreaker(11, 10).admits(0)).toBe(true);
  });

  test.each([
    { laterMs: 4_999, admits: false },
    { laterMs: 5_000, admits: false },
    { laterMs: 9_999, admits: false },
    { laterMs: 10_000, admits: true },
  ])(
    "counter circuit breaker admits calls ($admits) after 19 failures and another failure $laterMs ms later",
    ({ laterMs, admits }) => {
      const breaker = aBreaker(0, 19, 1_000_000);
      breaker.failed(1_000_000 + laterMs);
      expect(breaker.admits(1_000_000 + laterMs)).toBe(admits);
    },
  );

  test("counter circuit breaker forgets old failures while calls continue", () => {
    const breaker = aBreaker(0, 19, 1_000_000);
    breaker.succeeded(1_005_000);
    breaker.succeeded(1_010_000);
    breaker.failed(1_010_000);
    expect(breaker.admits(1_010_000)).toBe(true);
  });

  test("a successful probe resets the failure count of the counter circuit breaker", () => {
    const breaker = aBreaker(0, 20);
    expect(breaker.admits(1_000)).toBe(true);
    breaker.succeeded(1_000);
    for (let i = 0; i < 18; i++) breaker.failed(1_000);
    expect(breaker.admits(1_000)).toBe(true);
    breaker.failed(1_000);
    expect(breaker.admits(1_000)).toBe(false);
  });

  test("a failed probe keeps the counter circuit breaker open for another second", () => {
    const breaker = aBreaker(0, 20);
    expect(breaker.admits(60_000)).toBe(true);
    breaker.failed(60_000);
    expect(breaker.admits(60_999)).toBe(false);
    expect(breaker.admits(61_000)).toBe(true);
  });

  test("late success of a call that was sent before the counter circuit breaker opened does not close the breaker", () => {
    const breaker = aBreaker(0, 20);
    breaker.succeeded(500);
    expect(breaker.admits(999)).toBe(false);
    expect(breaker.admits(1_000)).toBe(true);
  });
});

test("counter circuit breaker passes on the caller's deadline", async () => {
  const asked: (ConsumeOptions | undefined)[] = [];
  const inner: StrictCounters = {
    consume: async (_request, options) => {
      asked.push(options);
      return consumed;
    },
    close: async () => {},
  };
  const guarded = new GuardedCounters(inner, { timeoutMs: 500 });
  const before = performance.now();
  expect(await guarded.consume({ limits: [] }, { dryRun: true })).toBe(consumed);
  expect(asked[0]?.dryRun).toBe(true);
  const dueMs = asked[0]?.caller?.dueMs ?? 0;
  expect(dueMs).toBeGreaterThanOrEqual(before + 500);
  expect(dueMs).toBeLessThanOrEqual(performance.now() + 500);
  await guarded.close();
});

test("counter circuit breaker gives each caller the full timeout and ignores late responses", async () => {
  const responses: Array<(response: Consumed) => void> = [];
  const late = () => new Promise<Consumed>((resolve) => responses.push(resolve));
  const guarded = new GuardedCounters(countersThat(late), { timeoutMs: 40 });
  const call = async () => {
    const beganMs = performance.now();
    await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
    return performance.now() - beganMs;
  };
  const calls = [call()];
  await sleep(15);
  calls.push(call());
  await sleep(15);
  calls.push(call());
  calls.push(...Array.from({ length: 7 }, call));
  for (const tookMs of await Promise.all(calls)) expect(tookMs).toBeGreaterThanOrEqual(39);
  // Ten calls have failed. If their late responses counted too, there would be 20 calls, and one more failure would open the circuit
  // breaker.
  for (const respond of responses) respond(consumed);
  await sleep(0);
  await call();
  await call();
  expect(responses).toHaveLength(12);
});

describe("timeout of a counter call in a busy process", () => {
  /** Responds after this time. The timer is due in the same turn as the timeout of the circuit breaker and fires directly after it. */
  const after = (ms: number) => () =>
    new Promise<Consumed>((resolve) => {
      setTimeout(() => resolve(consumed), ms);
    });

  test("counter circuit breaker accepts a response that arrives in the same event loop turn as the timeout", async () => {
    const options = { timeoutMs: 20 };
    expect(await new GuardedCounters(countersThat(after(20)), options).consume({ limits: [] })).toBe(consumed);
  });

  test("counter call without a response fails after the timeout", async () => {
    const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 20 });
    const beganMs = performance.now();
    await expect(guarded.consume({ limits: [] })).rejects.toThrow(/no answer within 20 ms/);
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(19);
  });

  const beBusy = (ms: number) => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs);
  };

  test("counter call timeout restarts once when the process was busy", async () => {
    const callers: Caller[] = [];
    const inner: StrictCounters = {
      consume: (_request, options) => {
        if (options?.caller !== undefined) callers.push(options.caller);
        return never();
      },
      close: async () => {},
    };
    const guarded = new GuardedCounters(inner, { timeoutMs: 50 });
    const beganMs = performance.now();
    const refused = expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
    const firstDueMs = callers[0]?.dueMs ?? 0;
    beBusy(100);
    const dueMs = await waitFor("more time", () => callers[0] && callers[0].dueMs > firstDueMs && callers[0].dueMs);
    expect(dueMs - firstDueMs).toBeGreaterThanOrEqual(100);
    beBusy(100);
    await refused;
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(149);
    expect(callers[0]?.dueMs).toBe(dueMs);
  });

  test("long counter call timeout is extended by 250 ms", async () => {
    const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 500 });
    const beganMs = performance.now();
    const refused = expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
    beBusy(550);
    await refused;
    const tookMs = performance.now() - beganMs;
    expect(tookMs).toBeGreaterThanOrEqual(799);
    expect(tookMs).toBeLessThan(1_050);
  });
});

test("closing the counter circuit breaker closes the counters", async () => {
  let isClosed = false;
  const inner: StrictCounters = {
    consume: never,
    close: async () => {
      isClosed = true;
    },
  };
  await new GuardedCounters(inner, { timeoutMs: 5 }).close();
  expect(isClosed).toBe(true);
});

test("open counter circuit breaker fails every call immediately", async () => {
  let asked = 0;
  const failing = countersThat(() => {
    asked += 1;
    return Promise.reject(new CountersUnavailable("lost"));
  });
  const guarded = new GuardedCounters(failing, { timeoutMs: 1_000 });
  for (let i = 0; i < 30; i++)
    await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
  expect(asked).toBe(20);
});

describe("a Redis that stops responding", () => {
  test("counter circuit breaker opens after 900 ms without a response", () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5_000; i++) breaker.succeeded(1_000);
    breaker.sent(1_000);
    breaker.sent(1_800);
    breaker.checkSilence(1_899);
    expect(breaker.admits(1_899)).toBe(true);
    breaker.checkSilence(1_900);
    expect(breaker.admits(1_900)).toBe(false);
  });

  test("caller that retries immediately after its call timed out is refused without another wait", async () => {
    let asked = 0;
    const silent = countersThat(() => {
      asked += 1;
      return never();
    });
    const guarded = new GuardedCounters(silent, { timeoutMs: 950 });
    const again = () => guarded.consume({ limits: [] });
    const beganMs = performance.now();
    await expect(guarded.consume({ limits: [] }).catch(again)).rejects.toThrow(/not called for now/);
    expect(performance.now() - beganMs).toBeLessThan(1_900);
    expect(asked).toBe(1);
  });

  test("circuit breaker opens 1 s after a call that was sent just before the last response was read", () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5_000; i++) breaker.succeeded(1_000);
    breaker.sent(1_000);
    breaker.answered();
    // A busy process reads a response late.
    breaker.sent(1_090);
    breaker.checkSilence(2_000);
    expect(breaker.admits(2_000)).toBe(false);
  });

  test("counter circuit breaker stays closed while some responses arrive, even late ones", () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5_000; i++) breaker.succeeded(1_000);
    for (let nowMs = 1_000; nowMs < 6_000; nowMs += 100) {
      breaker.sent(nowMs);
      breaker.failed(nowMs + 50);
      breaker.checkSilence(nowMs + 50);
      // The response arrives after its caller has timed out.
      if (nowMs % 800 === 0) breaker.answered();
    }
    expect(breaker.admits(6_000)).toBe(true);
  });

  test("open counter circuit breaker probes once per second and closes on a response", async () => {
    let asked = 0;
    let isSilent = true;
    const inner = countersThat(() => {
      asked += 1;
      return isSilent ? never() : Promise.resolve(consumed);
    });
    const probes: PromiseWithResolvers<void>[] = [];
    const probe = () => {
      const probing = Promise.withResolvers<void>();
      probes.push(probing);
      return probing.promise;
    };
    const guarded = new GuardedCounters(inner, { timeoutMs: 1_000, probe });
    await expect(guarded.consume({ limits: [] })).rejects.toThrow(/no answer within 1000 ms/);
    await sleep(5);
    const slowestMs = async (ms: number): Promise<number> => {
      let slowest = 0;
      for (const until = performance.now() + ms; performance.now() < until; await sleep(10)) {
        const sentMs = performance.now();
        await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
        slowest = Math.max(slowest, performance.now() - sentMs);
      }
      return slowest;
    };
    expect(await slowestMs(1_500)).toBeLessThan(500);
    expect([asked, probes.length]).toEqual([1, 1]);
    isSilent = false;
    probes[0]?.resolve();
    await sleep(0);
    expect(await guarded.consume({ limits: [] })).toBe(consumed);
    await guarded.close();
  });
});
