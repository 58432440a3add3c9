import { afterEach, expect, test } from "vitest";
import { rollCounts, type WindowCounts } from "../../core/ratelimits/window.ts";
import { waitFor } from "../../test/harness/wait.ts";
import type { LimitCharge } from "./contract.ts";
import { type Exchanged, type ExchangeItem, withAmounts } from "./exchange.ts";
import { LocalCounters } from "./local.ts";
import { counterName, MemoryCounters } from "./memory.ts";

const HOUR_MS = 3_600_000;
const charge: LimitCharge = {
  workspaceId: "ws_1",
  scope: { kind: "name", value: "n" },
  identifier: "alice",
  limit: 10,
  durationMs: HOUR_MS,
  cost: 1,
  accuracy: "local",
};

/** A shared store in this process, which can be away or lose its answers. */
class SharedTotals {
  readonly totals = new Map<string, WindowCounts>();
  state: "there" | "away" | "answers get lost" = "there";
  exchanges = 0;

  exchange = async (items: readonly ExchangeItem[]): Promise<Exchanged | undefined> => {
    if (this.state === "away") return undefined;
    this.exchanges += 1;
    const nowMs = Date.now();
    const counts = items.map(({ key, durationMs, ...amount }) => {
      const sum = withAmounts(this.totals.get(key), [amount]) as WindowCounts;
      const rolled = rollCounts(sum, Math.floor(nowMs / durationMs));
      this.totals.set(key, rolled);
      return rolled;
    });
    if (this.state === "answers get lost") throw new Error("connection lost");
    return { nowMs, counts };
  };

  total(): number {
    return this.totals.get(counterName(charge))?.current ?? 0;
  }
}

const opened: LocalCounters[] = [];
const aProcess = (shared: SharedTotals) => {
  const counters = new LocalCounters(new MemoryCounters(), {
    keyOf: counterName,
    exchange: shared.exchange,
    everyMs: 5,
  });
  opened.push(counters);
  return counters;
};
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
});

const admit = async (counters: LocalCounters, times: number) => {
  let admitted = 0;
  for (let i = 0; i < times; i++) if ((await counters.consume({ limits: [charge] })).passed) admitted += 1;
  return admitted;
};

test("alone it admits exactly the limit", async () => {
  const counters = aProcess(new SharedTotals());
  expect(await admit(counters, 30)).toBe(10);
  expect(counters.overAdmitted()).toBe(0);
});

test("what is being exchanged counts until the answer is there, and once after it", async () => {
  const shared = new SharedTotals();
  const reached = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const counters = new LocalCounters(new MemoryCounters(), {
    keyOf: counterName,
    everyMs: 5,
    exchange: async (items) => {
      reached.resolve();
      await answer.promise;
      return shared.exchange(items);
    },
  });
  opened.push(counters);
  expect(await admit(counters, 6)).toBe(6);
  await reached.promise;
  const meanwhile = await admit(counters, 30);
  answer.resolve();
  expect(meanwhile).toBe(4);
  await waitFor("the exchange of all", () => shared.total() === 10);
  expect(await admit(counters, 1)).toBe(0);
  expect(counters.overAdmitted()).toBe(0);
});

test("what others admitted counts after the next exchange", async () => {
  const shared = new SharedTotals();
  const [first, second] = [aProcess(shared), aProcess(shared)];
  expect(await admit(first, 6)).toBe(6);
  await waitFor("the exchange", () => shared.total() === 6);
  expect(await admit(second, 1)).toBe(1);
  await waitFor("the exchange", () => shared.total() === 7);
  expect(await admit(second, 10)).toBe(3);
});

test("what was admitted while the store was away is told afterwards, once", async () => {
  const shared = new SharedTotals();
  shared.state = "away";
  const counters = aProcess(shared);
  expect(await admit(counters, 7)).toBe(7);
  shared.state = "there";
  await waitFor("the exchange", () => shared.total() === 7);
  await admit(counters, 1);
  await waitFor("the next exchange", () => shared.total() === 8);
});

test("an amount whose answer was lost is never sent again, and still counts here", async () => {
  const shared = new SharedTotals();
  shared.state = "answers get lost";
  const counters = aProcess(shared);
  await admit(counters, 7);
  await waitFor("the exchange", () => shared.exchanges > 0);
  expect(await admit(counters, 10)).toBe(3);
  shared.state = "there";
  await waitFor("the exchange", () => shared.total() === 10);
});

test("closing tells the last of it", async () => {
  const shared = new SharedTotals();
  const counters = aProcess(shared);
  await admit(counters, 4);
  await counters.close();
  expect(shared.total()).toBe(4);
});
