import { Pool } from "undici";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRedisEdge } from "../../edge/open.ts";
import { connectRedis, type RedisClient } from "../../edge/redis/connect.ts";
import { aRule, openGate, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { createTestRedis, type TestRedis } from "../../test/harness/redis.ts";

const DAY_MS = 86_400_000;
const VALUES = 12_000;
const limit = (name: string, by: string, max: number) => ({
  scope: { kind: "name", name } as const,
  by: [by],
  limit: max,
  durationMs: DAY_MS,
  cost: 1,
  accuracy: "strict" as const,
});

let redis: TestRedis;
let client: RedisClient;
let gate: TestGate;
beforeEach(async () => {
  redis = await createTestRedis();
  client = connectRedis({ url: redis.url, clientName: "invented-values" });
  const edge = await openRedisEdge({ url: redis.url, prefix: redis.prefix, clientName: "gate" });
  await waitFor("the edge to be connected", () => edge.ping().then(() => true));
  const rules = [
    aRule({
      path: { prefix: "/flooded" },
      access: "Anonymous",
      ratelimits: [limit("flooded", "header.X-Tenant", 5)],
    }),
    aRule({ access: "Anonymous", ratelimits: [limit("other", "header.X-Other", 3)] }),
  ];
  gate = await openGate({ edge, policy: { formatVersion: 2, rules } });
});
afterEach(async () => {
  await gate.close();
  client.disconnect();
  await redis.close();
});

test("flood of invented header values creates at most 10,001 counters, and other limits stay exact", async () => {
  const pool = new Pool(`http://127.0.0.1:${gate.port}`, { connections: 40 });
  const statusOf = async (path: string, headers: Record<string, string>) => {
    const { statusCode, body } = await pool.request({ path, method: "GET", headers });
    await body.dump();
    return statusCode;
  };
  const other = () => statusOf("/", { "X-Other": "a" });
  expect(await other()).toBe(200);
  let next = 0;
  const flood = async () => {
    const codes = new Map<number, number>();
    while (next < VALUES) {
      const code = await statusOf("/flooded", { "X-Tenant": `invented ${next++}` });
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    return codes;
  };
  const all = await Promise.all(Array.from({ length: 40 }, flood));
  const total = (code: number) => all.reduce((sum, codes) => sum + (codes.get(code) ?? 0), 0);
  // The first 10,000 values have counters of their own, and the others share one, which admits 5.
  expect([total(200), total(429)]).toEqual([10_005, VALUES - 10_005]);
  expect([await other(), await other(), await other()]).toEqual([200, 200, 429]);
  // A value that is known before the flood ends keeps its own counter.
  expect(await statusOf("/flooded", { "X-Tenant": "invented 0" })).toBe(200);

  let counters = 0;
  let cursor = "0";
  do {
    const [next, keys] = await client.scan(cursor, "MATCH", `${redis.prefix}:*:rl:*`, "COUNT", 1_000);
    counters += keys.length;
    cursor = next;
  } while (cursor !== "0");
  expect(counters).toBe(10_002);
  await pool.close();
}, 180_000);
