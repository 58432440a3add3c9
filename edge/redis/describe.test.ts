import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { type OwnRedis, type OwnRedisOptions, startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { connectRedis, type RedisClient, whenReady } from "./connect.ts";
import { describeRedis } from "./describe.ts";

const CLUSTER = { cluster: true, args: ["--cluster-announce-ip", "127.0.0.1"] };

async function startRedis(options: OwnRedisOptions = {}): Promise<{ own: OwnRedis; client: RedisClient; raw: Redis }> {
  const own = await startOwnRedis(options);
  onTestFinished(() => own.stop());
  const client = connectRedis({
    url: options.cluster ? `${own.url}?cluster=true` : own.url,
    clientName: "describing",
  });
  onTestFinished(() => client.disconnect());
  const raw = new Redis(own.url);
  raw.on("error", () => undefined); // A test that kills the server waits until it has recovered.
  onTestFinished(() => raw.disconnect());
  await whenReady(client, AbortSignal.timeout(10_000));
  return { own, client, raw };
}

const infoOf = async (raw: Redis, field: string): Promise<string | undefined> =>
  new RegExp(`^${field}:(\\S*)`, "m").exec(await raw.info())?.[1];

async function save(raw: Redis): Promise<void> {
  await raw.bgsave();
  await waitFor("the snapshot", async () => (await infoOf(raw, "rdb_bgsave_in_progress")) === "0");
}

async function afterRestart(own: OwnRedis, client: RedisClient): Promise<ReturnType<typeof describeRedis>> {
  await own.restart({ signal: "SIGKILL" });
  return await waitFor("the connection to be back", () => describeRedis(client));
}

describe("one Redis", () => {
  test("describeRedis reports version, eviction policy, memory and clients", async () => {
    const { client, raw } = await startRedis({
      args: ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"],
    });
    const said = await describeRedis(client);
    expect(said).toMatchObject({
      version: (await infoOf(raw, "valkey_version")) ?? (await infoOf(raw, "redis_version")),
      evictionPolicy: "allkeys-lru",
      memoryMaxBytes: 64 * 1024 * 1024,
      role: "master",
      nodes: 1,
      clients: 2,
    });
    expect(said.version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(said.memoryBytes).toBeGreaterThan(100_000);
    expect(said.memoryBytes).toBeLessThan(said.memoryMaxBytes);
    const startedAt = Date.now() - Number(await infoOf(raw, "uptime_in_seconds")) * 1000;
    expect(Math.abs(said.startedAt - startedAt)).toBeLessThan(2_000);
  });

  test("describeRedis reports snapshots once one has been written", async () => {
    const { client, raw } = await startRedis();
    expect(await describeRedis(client)).toMatchObject({ persistence: "none", evictionPolicy: "noeviction" });
    await save(raw);
    expect((await describeRedis(client)).persistence).toBe("snapshots");
  });

  test("describeRedis reports an append-only file, and also a snapshot if one exists", async () => {
    const { client, raw } = await startRedis({ args: ["--appendonly", "yes"] });
    expect((await describeRedis(client)).persistence).toBe("append-only file");
    await save(raw);
    expect((await describeRedis(client)).persistence).toBe("append-only file and snapshots");
  });
});

describe("a Redis that was killed", () => {
  test.each([
    { name: "one Redis", options: {} },
    { name: "a cluster", options: CLUSTER },
  ])("describeRedis returns nothing while Redis is unreachable: $name", async ({ options }) => {
    const { own, client } = await startRedis(options);
    expect((await describeRedis(client)).nodes).toBe(1);
    await own.kill("SIGKILL");
    // Repeated calls all fail, including one during the loss of the connection.
    for (let look = 0; look < 50; look++) await expect(describeRedis(client)).rejects.toThrow();
  });

  test("describeRedis reports an empty Redis after a restart without persistence", async () => {
    const { own, client, raw } = await startRedis();
    await raw.set("kept", "x".repeat(4_000_000));
    const before = await describeRedis(client);
    const after = await afterRestart(own, client);
    expect(after.persistence).toBe("none");
    expect(after.memoryBytes).toBeLessThan(before.memoryBytes - 3_000_000);
  });

  test.each([
    { name: "a snapshot", args: [], persistence: "snapshots" },
    { name: "an append-only file", args: ["--appendonly", "yes"], persistence: "append-only file" },
  ])("describeRedis reports persistence of a Redis restored from $name", async ({ args, persistence }) => {
    const { own, client, raw } = await startRedis({ args });
    await raw.set("kept", "1");
    if (persistence === "snapshots") await save(raw);
    else {
      // After the rewrite the append-only file begins with a snapshot.
      await raw.bgrewriteaof();
      await waitFor("the file", async () => (await infoOf(raw, "aof_rewrite_in_progress")) === "0");
    }
    expect((await afterRestart(own, client)).persistence).toBe(persistence);
    await waitFor("the other connection to be back", async () => (await raw.get("kept")) === "1");
  });
});

test("describeRedis describes a cluster by its masters", async () => {
  const { client, raw } = await startRedis(CLUSTER);
  const said = await describeRedis(client);
  expect(said).toMatchObject({ nodes: 1, role: "master", evictionPolicy: "noeviction", persistence: "none" });
  expect(said.version).toBe((await infoOf(raw, "valkey_version")) ?? (await infoOf(raw, "redis_version")));
  expect(said.memoryBytes).toBeGreaterThan(100_000);
});
