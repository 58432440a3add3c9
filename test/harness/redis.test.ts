import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestRedis, type OwnRedis, startOwnRedis, type TestRedis } from "./redis.ts";

let shared: TestRedis;
let redis: Redis;

beforeAll(async () => {
  shared = await createTestRedis();
  redis = new Redis(shared.url);
});
afterAll(async () => {
  redis?.disconnect();
  await shared?.close();
});

test("shared test Redis is a real server without eviction", async () => {
  expect(await redis.info("server")).toMatch(/^(redis|valkey)_version:[78]/m);
  expect(await redis.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
});

test("closing a test Redis prefix deletes only its keys", async () => {
  const mine = await createTestRedis();
  await redis.mset(`${mine.prefix}a`, "1", `${mine.prefix}b`, "2", `${shared.prefix}c`, "3");
  await mine.close();
  expect(await redis.mget(`${mine.prefix}a`, `${mine.prefix}b`, `${shared.prefix}c`)).toEqual([null, null, "3"]);
});

async function use<T>(own: OwnRedis, action: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(own.url);
  try {
    return await action(client);
  } finally {
    client.disconnect();
  }
}

test("dedicated test Redis without an append-only file loses its keys on restart", async () => {
  const own = await startOwnRedis();
  try {
    const before = own.pid;
    await use(own, (client) => client.set("k", "v"));
    await own.restart({ args: ["--appendonly", "yes"] });
    expect(own.pid).not.toBe(before);
    expect(await use(own, (client) => client.get("k"))).toBeNull();
    await use(own, (client) => client.set("k", "v"));
    await own.restart({ args: ["--appendonly", "yes"], signal: "SIGKILL" });
    expect(await use(own, (client) => client.get("k"))).toBe("v");
  } finally {
    await own.stop();
  }
});

test("test Redis Cluster node rejects a cross-slot command even after a restart", async () => {
  const own = await startOwnRedis({ cluster: true });
  try {
    await use(own, (client) => client.mset("{a}1", "x", "{a}2", "y"));
    await expect(use(own, (client) => client.mset("a", "x", "b", "y"))).rejects.toThrow("CROSSSLOT");
    await own.restart();
    await expect(use(own, (client) => client.mset("a", "x", "b", "y"))).rejects.toThrow("CROSSSLOT");
  } finally {
    await own.stop();
  }
});
