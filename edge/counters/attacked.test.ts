import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CreditCharge, LimitCharge } from "../../core/charges.ts";
import { createTestRedis, type OwnRedis, startOwnRedis, type TestRedis } from "../../test/harness/redis.ts";
import { RedisCreditStore } from "../credits/redis.ts";
import { DeadlineClock } from "../redis/deadline-clock.ts";
import { RedisKeys } from "../redis/keys.ts";
import { CounterKeys } from "./counter-keys.ts";
import { RedisCounters } from "./redis.ts";
import { syncWithRedis } from "./sync.ts";

/*
 * Counter scripts with numbers at and beyond their bounds, and with foreign values at their keys: a client with write access to the prefix
 * of a workspace may write anything. A foreign value is replaced, so that no manual repair is required; a script that Redis rejects names
 * the key.
 */

const MAX = Number.MAX_SAFE_INTEGER;
const WORKSPACE = "ws_attacked";

let store: TestRedis;
let redis: Redis;
let redisKeys: RedisKeys;
let counters: RedisCounters;
let keys: CounterKeys;
let serial = 0;
beforeAll(async () => {
  store = await createTestRedis();
  redis = new Redis(store.url);
  redisKeys = new RedisKeys(store.prefix.slice(0, -1));
  counters = new RedisCounters(redis, redisKeys);
  keys = new CounterKeys(redisKeys);
});
afterAll(async () => {
  redis.disconnect();
  await store.close();
});

const aLimit = (of: Partial<LimitCharge> = {}): LimitCharge => {
  serial += 1;
  const scope = { kind: "name", value: "n" } as const;
  const numbers = { limit: 5, durationMs: 3_600_000, cost: 1 };
  return { workspaceId: WORKSPACE, scope, identifier: `i${serial}`, ...numbers, accuracy: "strict", ...of };
};
const consume = async (...limits: LimitCharge[]) =>
  counters.consume({ limits }).then(
    ({ passed }) => (passed ? "passed" : "refused"),
    (error: Error) => error.name,
  );
const isComplete = (text: string | undefined) => /^\d{1,16}$/.test(text ?? "") && Number(text) <= MAX;

describe("extreme and invalid numbers", () => {
  test.each([
    { what: "the largest cost of the largest limit", of: { limit: MAX, cost: MAX }, ends: ["passed", "refused"] },
    { what: "one more than the limit", of: { limit: MAX - 1, cost: MAX }, ends: ["refused", "refused"] },
    { what: "no limit", of: { limit: 0, cost: 0 }, ends: ["refused", "refused"] },
    { what: "no cost", of: { limit: 1, cost: 0 }, ends: ["passed", "passed"] },
    { what: "the shortest window", of: { durationMs: 1, limit: 1 }, ends: ["passed"] },
    { what: "the longest window", of: { durationMs: 2 ** 34, limit: 1 }, ends: ["passed", "refused"] },
  ])("counters handle extreme numbers: $what", async ({ of, ends }) => {
    const limit = aLimit(of);
    const seen: string[] = [];
    for (const _ of ends) seen.push(await consume(limit));
    expect(seen).toEqual(ends);
    const stored = await redis.hgetall(keys.of(limit));
    for (const text of Object.values(stored)) expect(isComplete(text), text).toBe(true);
  });

  // The schemas of policies and of the API reject all of these values; the test attacks the last check.
  const NONE = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53, 1e308, -1, -MAX, 0.5];
  test.each(NONE.flatMap((value) => (["limit", "cost", "durationMs"] as const).map((member) => ({ member, value }))))(
    "counters reject the value $value of $member without charging any limit",
    async ({ member, value }) => {
      const limit = aLimit({ [member]: value });
      const bystander = aLimit();
      const seen = await Promise.all([consume(limit), consume(bystander), consume(limit, aLimit())]);
      // A gate treats the failed requests like those during a Redis outage.
      expect(seen).toEqual(["CountersUnavailable", "passed", "CountersUnavailable"]);
      expect(await redis.exists(keys.of(limit))).toBe(0);
    },
  );
});

const FOREIGN: { what: string; write: (key: string) => Promise<unknown> }[] = [
  { what: "a string", write: (key) => redis.set(key, "no hash") },
  { what: "a long string", write: (key) => redis.setrange(key, 20_000_000, "x") },
  { what: "a list", write: (key) => redis.rpush(key, "a", "b") },
  { what: "a set", write: (key) => redis.sadd(key, "a") },
  { what: "a sorted set", write: (key) => redis.zadd(key, 1, "a") },
  { what: "a stream", write: (key) => redis.xadd(key, "*", "a", "b") },
  ...["-1", "NaN", "inf", "1e400", "1.5", "9007199254740992", "", " ", "\u0000", "9".repeat(1_000)].map((text) => ({
    what: `a hash with the numbers ${JSON.stringify(text.slice(0, 20))}`,
    write: (key: string) =>
      redis.hset(key, ...["window", "current", "previous", "rev", "granted", "spent"].flatMap((f) => [f, text])),
  })),
];

describe.each(FOREIGN)("$what under the key", ({ write }) => {
  test("counters replace an unexpected value at a limit's Redis key and start at zero", async () => {
    const [limit, other] = [aLimit({ limit: 2 }), aLimit({ limit: 1 })];
    expect(await consume(other)).toBe("passed");
    await write(keys.of(limit));
    expect([await consume(limit), await consume(limit), await consume(limit), await consume(other)]).toEqual([
      "passed",
      "passed",
      "refused",
      "refused",
    ]);
    expect(await redis.type(keys.of(limit))).toBe("hash");
  });

  test("unexpected value at one limit's Redis key does not make other limits admit extra requests", async () => {
    const [good, bad] = [aLimit({ limit: 2 }), aLimit({ limit: 100 })];
    await write(keys.of(bad));
    const seen: string[] = [];
    for (let i = 0; i < 3; i++) seen.push(await consume(good, bad));
    expect(seen).toEqual(["passed", "passed", "refused"]);
  });

  test("unexpected value at a limit's Redis key is replaced when charges admitted during an outage are added", async () => {
    const [limit, other] = [aLimit(), aLimit()];
    await write(keys.of(limit));
    const { durationMs } = limit;
    const window = Math.floor(Date.now() / durationMs);
    const items = [limit, other].map((of) => ({ key: keys.of(of), durationMs, window, amount: 3 }));
    const synced = await syncWithRedis(redis, items);
    expect(synced?.counts.map(({ current, previous }) => current + previous)).toEqual([3, 3]);
  });

  test("unexpected value at a credit counter's Redis key is replaced from the database, and then credits are spent", async () => {
    serial += 1;
    const keyId = `key_${serial}`;
    const credits: CreditCharge = { workspaceId: WORKSPACE, keyId, cost: 1 };
    const credit = new RedisCreditStore(redis, redisKeys, new DeadlineClock());
    await write(redisKeys.credits(WORKSPACE, keyId));
    for (const set of [redisKeys.creditsDirty(WORKSPACE), redisKeys.creditsLoad(WORKSPACE)]) {
      await redis.del(set);
      await write(set);
    }
    const spend = async () => (await counters.consume({ limits: [], credits })).credits;
    expect(await spend()).toEqual({ status: "unknown" });
    // A foreign set remains in use; loaders ignore members that are not key ids.
    expect(await redis.smembers(redisKeys.creditsLoad(WORKSPACE))).toContain(keyId);
    await credit.load([{ ref: { workspaceId: WORKSPACE, keyId }, counter: { rev: 1, granted: 2, spent: 0 } }]);
    expect([await spend(), await spend(), await spend()]).toEqual([
      { status: "spent", remaining: 1 },
      { status: "spent", remaining: 0 },
      { status: "refused", remaining: 0 },
    ]);
    expect(await redis.smembers(redisKeys.creditsDirty(WORKSPACE))).toContain(keyId);
  });
});

describe("a Redis that rejects what a script does", () => {
  let own: OwnRedis;
  let full: Redis;
  beforeAll(async () => {
    own = await startOwnRedis();
    full = new Redis(own.url);
  });
  afterAll(async () => {
    full.disconnect();
    await own.stop();
  });

  test("Redis error in a counter script is reported with reason and key, and no request is admitted", async () => {
    const user = ["reset", "on", "nopass", "~*", "+@all", "-hincrby"];
    await full.call("ACL", "SETUSER", "limited", ...user);
    const confined = new Redis(own.url.replace("//", "//limited:any@"));
    const attacked = new RedisCounters(confined, redisKeys);
    const limit = aLimit();
    const [failed, checked] = await Promise.allSettled([
      attacked.consume({ limits: [limit] }),
      attacked.consume({ limits: [aLimit({ cost: 0 })] }),
    ]);
    confined.disconnect();
    expect(checked).toMatchObject({ status: "fulfilled", value: { passed: true } });
    expect(failed).toMatchObject({ status: "rejected", reason: { name: "CountersUnavailable" } });
    const { message } = (failed as PromiseRejectedResult).reason as Error;
    expect(message).toContain(keys.of(limit));
    expect(message).toContain("see ACL LOG");
    expect(JSON.stringify(await full.call("ACL", "LOG"))).toContain("hincrby");
  });
});
