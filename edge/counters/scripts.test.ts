import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { decideLimits } from "../../core/ratelimits/decide-limits.ts";
import { decideLimit, type WindowCounts } from "../../core/ratelimits/window.ts";
import { createTestRedis, type TestRedis } from "../../test/harness/redis.ts";
import { RedisKeys } from "../redis/keys.ts";
import { CounterKeys } from "./counter-keys.ts";
import { RedisCounters } from "./redis.ts";
import { CONSUME } from "./scripts.ts";

/*
 * The Lua script and core/ratelimits implement the same arithmetic. The Redis clock cannot be set, so counts are set relative to it, and
 * core gets the time of the script's decision.
 */

let store: TestRedis;
let redis: Redis;
let counters: RedisCounters;
let keys: CounterKeys;

beforeAll(async () => {
  store = await createTestRedis();
  redis = new Redis(store.url);
  const redisKeys = new RedisKeys(store.prefix.slice(0, -1));
  counters = new RedisCounters(redis, redisKeys);
  keys = new CounterKeys(redisKeys);
});
afterAll(async () => {
  redis.disconnect();
  await store.close();
});

afterEach(() => void vi.restoreAllMocks());

const aBystander: LimitCharge = {
  workspaceId: "ws_1",
  scope: { kind: "name", value: "bystander" },
  identifier: "bystander",
  limit: 5,
  durationMs: 60_000,
  cost: 1,
  accuracy: "strict",
};

const amount = fc.oneof(
  fc.nat(20),
  fc.nat(2_000),
  fc.integer({ min: 0, max: 2 ** 50 }),
  fc.integer({ min: Number.MAX_SAFE_INTEGER - 5, max: Number.MAX_SAFE_INTEGER }),
);
const counter = fc.record({
  durationMs: fc.oneof(fc.integer({ min: 1_000, max: 5_000 }), fc.integer({ min: 60_000, max: 10 ** 10 })),
  /** 0 is the current window; 1 and more: the clock is behind the window; `undefined`: no counts yet. */
  windowsAhead: fc.option(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer({ min: 10, max: 5_000 })), {
    nil: undefined,
  }),
  current: amount,
  previous: amount,
});
const charge = fc.record({ counter: fc.nat(2), limit: amount, cost: amount });

test("counter Lua script decides and counts exactly like the reference implementation", async () => {
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(counter, { minLength: 3, maxLength: 3 }),
      fc.array(charge, { minLength: 1, maxLength: 4 }),
      async (seeds, wanted) => {
        round += 1;
        const limits = wanted.map(
          ({ counter: at, limit, cost }): LimitCharge => ({
            workspaceId: "ws_1",
            scope: { kind: "name", value: "n" },
            identifier: `${round}/${at}`,
            limit,
            durationMs: seeds[at]?.durationMs ?? 0,
            cost,
            accuracy: "strict",
          }),
        );
        const before = new Map<string, WindowCounts>();
        for (const each of limits) {
          const seed = seeds[Number(each.identifier.split("/")[1])];
          if (seed?.windowsAhead === undefined) continue;
          const window = Math.floor(Date.now() / each.durationMs) + seed.windowsAhead;
          before.set(keys.of(each), { window, current: seed.current, previous: seed.previous });
        }
        for (const { durationMs, ...each } of limits) {
          const key = keys.of({ durationMs, ...each });
          const counts = before.get(key);
          // Sets the counts that the first call of the window would have written.
          if (counts !== undefined)
            await redis
              .multi()
              .hset(key, counts)
              .pexpire(key, 2 * durationMs)
              .exec();
        }

        // Either alone or behind a request in flight, where it shares its script call with another request but no counter.
        const bystander = () => (round % 2 === 0 ? [counters.consume({ limits: [aBystander] })] : []);
        const ahead = bystander();
        const [consumed] = await Promise.all([counters.consume({ limits }), ...bystander(), ...ahead]);

        const charges = limits.map((each) => ({ ...each, counterKey: keys.of(each) }));
        const expected = decideLimits(charges, (key) => before.get(key), consumed.nowMs);
        expect(consumed).toEqual({ nowMs: consumed.nowMs, passed: expected.passed, limits: expected.outcomes });
        for (const key of new Set(charges.map(({ counterKey }) => counterKey))) {
          const counts = expected.updates.get(key) ?? before.get(key);
          const texts = counts && {
            window: `${counts.window}`,
            current: `${counts.current}`,
            previous: `${counts.previous}`,
          };
          expect(await redis.hgetall(key)).toEqual(texts ?? {});
        }
        for (const { counterKey, durationMs } of charges) {
          const counts = expected.updates.get(counterKey);
          if (counts === undefined) continue;
          // Counts are needed until the end of the next window.
          const neededUntilMs = Math.min((counts.window + 2) * durationMs, consumed.nowMs + 2 * durationMs);
          expect(await redis.pexpiretime(counterKey)).toBeGreaterThanOrEqual(neededUntilMs);
        }
      },
    ),
    { numRuns: 400 },
  );
});

/** Returns the script with a fixed time, because a decision at a limit depends on the millisecond. */
const scriptAt = (nowMs: number): string =>
  CONSUME.lua.replaceAll("redis.call('TIME')", `{'${Math.floor(nowMs / 1000)}', '${(nowMs % 1000) * 1000}'}`);

test("counter Lua script admits a single limit exactly like the reference implementation", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        durationMs: fc.oneof(fc.integer({ min: 1_000, max: 5_000 }), fc.integer({ min: 10 ** 6, max: 2 ** 34 })),
        nowMs: fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
        windowsAhead: fc.oneof(fc.integer({ min: -2, max: 2 }), fc.integer({ min: 10, max: 100 })),
        current: fc.oneof(fc.nat(5), amount),
        previous: fc.oneof(fc.nat(100), amount),
        cost: fc.nat(3),
        over: fc.integer({ min: -1, max: 1 }),
      }),
      async ({ durationMs, nowMs, windowsAhead, current, previous, cost, over }) => {
        const window = Math.floor(nowMs / durationMs) + windowsAhead;
        const counts = { window, current, previous };
        const limit = decideLimit({ limit: 1, durationMs, counts, cost, nowMs }).effective - over;
        fc.pre(limit >= 0 && Number.isSafeInteger(limit));
        const key = keys.of({ ...aBystander, identifier: "edge", durationMs });
        await redis.hset(key, counts);
        const text = `${durationMs} ${limit} ${cost}`;
        const [reply] = JSON.parse((await redis.eval(scriptAt(nowMs), 1, key, text, nowMs + 1)) as string);
        const expected = decideLimit({ limit, durationMs, counts, cost, nowMs });
        expect(reply.slice(0, 2)).toEqual([nowMs, expected.passed ? 1 : 0]);
        const stored = expected.passed && cost > 0 ? expected.counts : counts;
        expect(await redis.hgetall(key)).toEqual(
          Object.fromEntries(Object.entries(stored).map(([name, value]) => [name, `${value}`])),
        );
      },
    ),
    { numRuns: 1000 },
  );
});

test("counter Lua script marks a key as dirty without altering an id that looks like a number", async () => {
  const ids = ["0012", "1e5", "0x10", "9007199254740993"];
  for (const keyId of ids) {
    const credits = { workspaceId: "ws_numbers", keyId, cost: 1 };
    expect(await counters.consume({ limits: [], credits })).toMatchObject({ credits: { status: "unknown" } });
  }
  const marked = new RedisKeys(store.prefix.slice(0, -1)).creditsLoad("ws_numbers");
  expect((await redis.smembers(marked)).sort()).toEqual(ids.toSorted());
});

test("a request that fails in the counter script does not affect other requests", async () => {
  const broken = { ...aBystander, identifier: "broken", cost: "no number" as unknown as number };
  const good = { ...aBystander, identifier: "good" };
  const [, failed, ...passed] = await Promise.allSettled(
    [aBystander, broken, good, good].map((limit) => counters.consume({ limits: [limit] })),
  );
  expect(failed).toMatchObject({ status: "rejected", reason: { name: "CountersUnavailable" } });
  expect(passed).toMatchObject([
    { value: { passed: true, limits: [{ remaining: 4 }] } },
    { value: { passed: true, limits: [{ remaining: 3 }] } },
  ]);
});

test("counter Lua script replaces an unexpected value at its Redis key", async () => {
  const limit = { ...aBystander, identifier: "strange" };
  await redis.set(keys.of(limit), "no hash");
  expect(await counters.consume({ limits: [limit] })).toMatchObject({ passed: true, limits: [{ remaining: 4 }] });
  expect(await redis.hget(keys.of(limit), "current")).toBe("1");
});

test("counter batcher sends a lone request immediately and batches later ones", async () => {
  await Promise.all(consume(1));
  const sent = vi.spyOn(redis, "sendCommand");
  const first = consume(1);
  expect(sent).toHaveBeenCalledTimes(1);
  const others = consume(20);
  await setImmediate();
  expect(sent).toHaveBeenCalledTimes(1);
  await Promise.all([...first, ...others]);
  expect(sent).toHaveBeenCalledTimes(2);
});

test("counter batcher sends requests of one event loop turn together under load", async () => {
  await Promise.all(consume(3));
  const sent = vi.spyOn(redis, "sendCommand");
  const all = consume(5);
  expect(sent).not.toHaveBeenCalled();
  await setImmediate();
  expect(sent).toHaveBeenCalledTimes(1);
  await Promise.all(all);
  await Promise.all(consume(1));
  // The call carried one request, so the next request is sent without a delay.
  const next = consume(1);
  expect(sent).toHaveBeenCalledTimes(3);
  await Promise.all(next);
});

test("counter batcher sends a full batch without waiting", async () => {
  await Promise.all(consume(3));
  const sent = vi.spyOn(redis, "sendCommand");
  const all = consume(32 + 32 + 3);
  expect(sent).toHaveBeenCalledTimes(2);
  await Promise.all(all);
  expect(sent).toHaveBeenCalledTimes(3);
});

const consume = (count: number) => Array.from({ length: count }, () => counters.consume({ limits: [aBystander] }));
