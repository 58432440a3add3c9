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

test("a call without an answer in time fails", async () => {
  const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 5, extraPoll: false });
  await expect(guarded.consume({ limits: [] })).rejects.toBeInstanceOf(CountersUnavailable);
});

test("a store that mostly fails is not called for a second, and then by one call", () => {
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

test("single failures among many successes do not open it, and old ones are forgotten", () => {
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

describe("of the calls of the last 5 to 10 s", () => {
  const aBreaker = (successes: number, failures: number, nowMs = 0) => {
    const breaker = new Breaker();
    for (let i = 0; i < successes; i++) breaker.succeeded(nowMs);
    for (let i = 0; i < failures; i++) breaker.failed(nowMs);
    return breaker;
  };

  test("half must have failed", () => {
    expect(aBreaker(10, 10).admits(0)).toBe(false);
    expect(aBreaker(11, 10).admits(0)).toBe(true);
  });

  test.each([
    { laterMs: 4_999, admits: false },
    { laterMs: 5_000, admits: false },
    { laterMs: 9_999, admits: false },
    { laterMs: 10_000, admits: true },
  ])("19 failures and one $laterMs ms later: calls are admitted: $admits", ({ laterMs, admits }) => {
    const breaker = aBreaker(0, 19, 1_000_000);
    breaker.failed(1_000_000 + laterMs);
    expect(breaker.admits(1_000_000 + laterMs)).toBe(admits);
  });

  test("older ones are forgotten also while calls continue", () => {
    const breaker = aBreaker(0, 19, 1_000_000);
    breaker.succeeded(1_005_000);
    breaker.succeeded(1_010_000);
    breaker.failed(1_010_000);
    expect(breaker.admits(1_010_000)).toBe(true);
  });

  test("none counts any more after the probing call has succeeded", () => {
    const breaker = aBreaker(0, 20);
    expect(breaker.admits(1_000)).toBe(true);
    breaker.succeeded(1_000);
    for (let i = 0; i < 18; i++) breaker.failed(1_000);
    expect(breaker.admits(1_000)).toBe(true);
    breaker.failed(1_000);
    expect(breaker.admits(1_000)).toBe(false);
  });

  test("the failure of the probing call alone keeps it open for another second", () => {
    const breaker = aBreaker(0, 20);
    expect(breaker.admits(60_000)).toBe(true);
    breaker.failed(60_000);
    expect(breaker.admits(60_999)).toBe(false);
    expect(breaker.admits(61_000)).toBe(true);
  });

  test("a call that was sent before it opened and succeeds late does not close it", () => {
    const breaker = aBreaker(0, 20);
    breaker.succeeded(500);
    expect(breaker.admits(999)).toBe(false);
    expect(breaker.admits(1_000)).toBe(true);
  });
});

test("a request is passed on with its caller's deadline", async () => {
  const asked: (ConsumeOptions | undefined)[] = [];
  const inner: StrictCounters = {
    consume: async (_request, options) => {
      asked.push(options);
      return consumed;
    },
    close: async () => {},
  };
  const guarded = new GuardedCounters(inner, { timeoutMs: 500, extraPoll: false });
  const before = performance.now();
  expect(await guarded.consume({ limits: [] }, { dryRun: true })).toBe(consumed);
  expect(asked[0]?.dryRun).toBe(true);
  const dueMs = asked[0]?.caller?.dueMs ?? 0;
  expect(dueMs).toBeGreaterThanOrEqual(before + 500);
  expect(dueMs).toBeLessThanOrEqual(performance.now() + 500);
  await guarded.close();
});

test("each of many callers gets the full timeout, and a late answer is ignored", async () => {
  const responses: Array<(response: Consumed) => void> = [];
  const late = () => new Promise<Consumed>((resolve) => responses.push(resolve));
  const guarded = new GuardedCounters(countersThat(late), { timeoutMs: 40, extraPoll: false });
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
  // Ten have failed. If their late answers counted as well, these would be 20 calls, and one more failure would open it.
  for (const respond of responses) respond(consumed);
  await sleep(0);
  await call();
  await call();
  expect(responses).toHaveLength(12);
});

describe("with an extra poll", () => {
  /** Answers after this time; its timer is of the same turn as the guard's, and fires directly after it. */
  const after = (ms: number) => () =>
    new Promise<Consumed>((resolve) => {
      setTimeout(() => resolve(consumed), ms);
    });

  test("an answer that arrives in the turn of the timeout is used", async () => {
    const options = { timeoutMs: 20, extraPoll: true };
    expect(await new GuardedCounters(countersThat(after(20)), options).consume({ limits: [] })).toBe(consumed);
  });

  test("a call without an answer by then fails", async () => {
    const guarded = new GuardedCounters(countersThat(never), { timeoutMs: 20, extraPoll: true });
    const beganMs = performance.now();
    await expect(guarded.consume({ limits: [] })).rejects.toThrow(/no answer within 20 ms/);
    expect(performance.now() - beganMs).toBeGreaterThanOrEqual(19);
  });

  const beBusy = (ms: number) => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs);
  };

  test("the time starts again when this process was busy, and only once", async () => {
    const callers: Caller[] = [];
    const inner: StrictCounters = {
      consume: (_request, options) => {
        if (options?.caller !== undefined) callers.push(options.caller);
        return never();
      },
      close: async () => {},
    };
    const guarded = new GuardedCounters(inner, { timeoutMs: 50, extraPoll: true });
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
});

test("closing it closes the counters behind it", async () => {
  let isClosed = false;
  const inner: StrictCounters = {
    consume: never,
    close: async () => {
      isClosed = true;
    },
  };
  await new GuardedCounters(inner, { timeoutMs: 5, extraPoll: false }).close();
  expect(isClosed).toBe(true);
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

describe("a store that falls silent after many answers", () => {
  test("opens the breaker when no call was answered for a second, and not before", () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5_000; i++) breaker.succeeded(1_000);
    breaker.sent(1_000);
    breaker.sent(1_900);
    breaker.checkSilence(1_999);
    expect(breaker.admits(1_999)).toBe(true);
    breaker.checkSilence(2_000);
    expect(breaker.admits(2_000)).toBe(false);
  });

  test("keeps it closed as long as it answers some call, however late", () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5_000; i++) breaker.succeeded(1_000);
    for (let nowMs = 1_000; nowMs < 6_000; nowMs += 100) {
      breaker.sent(nowMs);
      breaker.failed(nowMs + 50);
      breaker.checkSilence(nowMs + 50);
      // Later than its caller waited.
      if (nowMs % 1_000 === 900) breaker.answered();
    }
    expect(breaker.admits(6_000)).toBe(true);
  });

  test("is probed once a second, no call waits for that, and the first answer closes the breaker", async () => {
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
    const guarded = new GuardedCounters(inner, { timeoutMs: 1_000, extraPoll: false, probe });
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
