import { afterEach, describe, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { rollCounts, type WindowCounts } from "../../core/ratelimits/window.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { creditsKey } from "../credits/memory-counters.ts";
import { CountersUnavailable } from "./contract.ts";
import { LocalCounters } from "./local.ts";
import { counterName, MemoryCounters, MemoryStore } from "./memory.ts";
import type { StrictCounters } from "./strict.ts";
import { type Synced, type SyncItem, withAmounts } from "./sync.ts";

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

/** Shared counters in this process that can become unreachable or lose replies. */
class SharedTotals {
  readonly totals = new Map<string, WindowCounts>();
  state: "there" | "away" | "replies get lost" = "there";
  syncs = 0;

  sync = async (items: readonly SyncItem[]): Promise<Synced | undefined> => {
    if (this.state === "away") return undefined;
    this.syncs += 1;
    const nowMs = Date.now();
    const counts = items.map(({ key, durationMs, ...amount }) => {
      const sum = withAmounts(this.totals.get(key), [amount]) as WindowCounts;
      const rolled = rollCounts(sum, { durationMs, nowMs });
      this.totals.set(key, rolled);
      return rolled;
    });
    if (this.state === "replies get lost") throw new Error("connection lost");
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
    sync: shared.sync,
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

test("a single process with local counters admits exactly the limit", async () => {
  const counters = aProcess(new SharedTotals());
  expect(await admit(counters, 30)).toBe(10);
  expect(counters.overAdmission.units).toBe(0);
});

test("local counters use bounded memory for new identifiers during a long outage", async () => {
  let tries = 0;
  let sent: number | undefined;
  let isThere = false;
  const counters = new LocalCounters(new MemoryCounters(), {
    keyOf: counterName,
    sync: async (items) => {
      tries += 1;
      if (!isThere) return undefined;
      sent ??= items.length;
      return { nowMs: Date.now(), counts: items.map(() => ({ window: 0, current: 0, previous: 0 })) };
    },
    everyMs: 50,
  });
  opened.push(counters);
  for (let i = 0; i < 100_500; i++) await counters.consume({ limits: [{ ...charge, identifier: `ip_${i}` }] });
  const before = tries;
  await waitFor("two tries in vain", () => tries >= before + 2);
  isThere = true;
  await waitFor("the store to be told", () => sent !== undefined);
  expect(sent).toBe(100_000);
});

test("local counters count a synced amount exactly once, both before and after the reply arrives", async () => {
  const shared = new SharedTotals();
  const reached = Promise.withResolvers<void>();
  const response = Promise.withResolvers<void>();
  const counters = new LocalCounters(new MemoryCounters(), {
    keyOf: counterName,
    everyMs: 5,
    sync: async (items) => {
      reached.resolve();
      await response.promise;
      return shared.sync(items);
    },
  });
  opened.push(counters);
  expect(await admit(counters, 6)).toBe(6);
  await reached.promise;
  const meanwhile = await admit(counters, 30);
  response.resolve();
  expect(meanwhile).toBe(4);
  await waitFor("the sync of all", () => shared.total() === 10);
  expect(await admit(counters, 1)).toBe(0);
  expect(counters.overAdmission.units).toBe(0);
});

test("local counters include amounts of other processes after the next sync", async () => {
  const shared = new SharedTotals();
  const [first, second] = [aProcess(shared), aProcess(shared)];
  expect(await admit(first, 6)).toBe(6);
  await waitFor("the sync", () => shared.total() === 6);
  expect(await admit(second, 1)).toBe(1);
  await waitFor("the sync", () => shared.total() === 7);
  expect(await admit(second, 10)).toBe(3);
});

test("local counters send amounts admitted during an outage after it, exactly once", async () => {
  const shared = new SharedTotals();
  shared.state = "away";
  const counters = aProcess(shared);
  expect(await admit(counters, 7)).toBe(7);
  shared.state = "there";
  await waitFor("the sync", () => shared.total() === 7);
  await admit(counters, 1);
  await waitFor("the next sync", () => shared.total() === 8);
});

test("local counters never resend an amount whose reply was lost, but still count it", async () => {
  const shared = new SharedTotals();
  shared.state = "replies get lost";
  const counters = aProcess(shared);
  await admit(counters, 7);
  await waitFor("the sync", () => shared.syncs > 0);
  expect(await admit(counters, 10)).toBe(3);
  shared.state = "there";
  await waitFor("the sync", () => shared.total() === 10);
});

test("closing local counters sends the last amounts", async () => {
  const shared = new SharedTotals();
  const counters = aProcess(shared);
  await admit(counters, 4);
  await counters.close();
  expect(shared.total()).toBe(4);
});

test("local counters measure how far all processes over-admitted between two syncs", async () => {
  const shared = new SharedTotals();
  shared.state = "away";
  const processes = [aProcess(shared), aProcess(shared), aProcess(shared)];
  for (const counters of processes) expect(await admit(counters, 30)).toBe(10);
  shared.state = "there";
  await waitFor("all syncs", () => shared.total() === 30);
  const over = () => processes.reduce((sum, counters) => sum + counters.overAdmission.units, 0);
  // The first process to sync sees no excess; each of the others counts only its own admissions.
  await waitFor("the measure", () => over() === 20);
});

test("local counters use the Redis clock after the first sync", async () => {
  const aheadMs = 5 * HOUR_MS;
  const counters = new LocalCounters(new MemoryCounters(), {
    keyOf: counterName,
    everyMs: 5,
    sync: async (items) => ({
      nowMs: Date.now() + aheadMs,
      counts: items.map(() => ({ window: 0, current: 0, previous: 0 })),
    }),
  });
  opened.push(counters);
  const behindMs = (await counters.consume({ limits: [charge] })).nowMs - Date.now();
  expect(Math.abs(behindMs)).toBeLessThan(HOUR_MS);
  await waitFor("the store's clock", async () => {
    const { nowMs } = await counters.consume({ limits: [{ ...charge, cost: 0 }] });
    return nowMs - Date.now() > aheadMs - HOUR_MS;
  });
});

describe("beside strict limits and credits", () => {
  const strict: LimitCharge = { ...charge, scope: { kind: "name", value: "strict" }, limit: 5, accuracy: "strict" };
  const other: LimitCharge = { ...charge, identifier: "bob", limit: 3 };
  const credits = { workspaceId: "ws_1", keyId: "key_1", cost: 2 };
  const mixed = (inner?: StrictCounters) => {
    const shared = new SharedTotals();
    const store = new MemoryStore();
    store.credits.set(creditsKey("ws_1", "key_1"), { open: true, rev: 1, granted: 3, spent: 0 });
    const counters = new LocalCounters(inner ?? new MemoryCounters(store), {
      keyOf: counterName,
      sync: shared.sync,
      everyMs: 5,
    });
    opened.push(counters);
    return { shared, counters };
  };

  test("outcomes of mixed local and strict limits keep the order of the request", async () => {
    const { counters } = mixed();
    const { passed, limits } = await counters.consume({ limits: [other, strict, charge] });
    expect(passed).toBe(true);
    expect(limits.map(({ remaining }) => remaining)).toEqual([2, 4, 9]);
  });

  test("local denial charges no strict limits or credits, and reports their remaining amounts", async () => {
    const { counters } = mixed();
    const refused = await counters.consume({ limits: [strict, { ...charge, limit: 0 }], credits });
    expect(refused).toMatchObject({ passed: false, limits: [{ passed: true, remaining: 5 }, { passed: false }] });
    expect(refused.credits).toEqual({ status: "unreached", remaining: undefined });
    expect(await counters.consume({ limits: [strict, { ...charge, limit: 0 }] })).not.toHaveProperty("credits");
    const passed = await counters.consume({ limits: [charge, strict], credits });
    expect(passed).toMatchObject({ limits: [{ remaining: 9 }, { remaining: 4 }] });
    expect(passed.credits).toEqual({ status: "spent", remaining: 1 });
  });

  test("strict denial charges no local limits, and reports their remaining amounts", async () => {
    const { counters, shared } = mixed();
    const refused = await counters.consume({
      limits: [
        { ...charge, cost: 4 },
        { ...strict, limit: 0 },
      ],
    });
    expect(refused).toMatchObject({ passed: false, limits: [{ passed: true, remaining: 10 }, { passed: false }] });
    expect(refused.limits[0]?.resetMs).toBeGreaterThan(refused.nowMs);
    expect(await admit(counters, 30)).toBe(10);
    await waitFor("the sync", () => shared.total() === 10);
  });

  test("denial for missing credits does not refund the local limit of the request", async () => {
    const { counters } = mixed();
    expect(await counters.consume({ limits: [charge], credits })).toMatchObject({ credits: { status: "spent" } });
    const refused = await counters.consume({ limits: [charge], credits });
    expect(refused).toMatchObject({ passed: true, limits: [{ remaining: 8 }], credits: { status: "refused" } });
  });

  test("request charges no local limits if the strict counters are unreachable", async () => {
    const { counters } = mixed({
      consume: () => Promise.reject(new CountersUnavailable("away")),
      close: async () => {},
    });
    for (let i = 0; i < 3; i++) {
      await expect(counters.consume({ limits: [{ ...charge, cost: 4 }, strict] })).rejects.toThrow("away");
    }
    expect(await admit(counters, 30)).toBe(10);
  });
});
