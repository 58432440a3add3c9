import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ADVISORY_LOCKS } from "../../postgres/advisory-locks.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";
import { createTestRedis, startOwnRedis, type TestRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";

const ROOT = resolve(import.meta.dirname, "../..");

let database: TestDatabase;
let redis: TestRedis;
let folder: string;
const startDev = (env: Record<string, string> = {}) => {
  const args = [PROGRAM, "dev", "--json", "--data-dir", folder, "--manifests", "examples/quickstart"];
  return startProcess(process.execPath, [...args, "--api-port", "0", "--sidecar-port", "0"], {
    cwd: ROOT,
    readyLine: /^\{.*"apiUrl".*\}$/m,
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: redis.prefix.slice(0, -1), ...env },
  });
};

beforeAll(async () => {
  [database, redis] = await Promise.all([createTestDatabase(), createTestRedis()]);
  folder = mkdtempSync(join(tmpdir(), "postern-dev-stores-"));
});
afterAll(async () => {
  await Promise.all([database?.drop(), redis?.close()]);
  rmSync(folder, { recursive: true, force: true });
});

test("postern dev uses DATABASE_URL and REDIS_URL without starting its own databases", async () => {
  const dev = await startDev();
  const client = new Redis(redis.url);
  try {
    const { sidecarUrl } = JSON.parse(dev.stdout()) as { sidecarUrl: string };
    expect((await fetch(`${sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
    expect(await client.keys(`${redis.prefix}*:p:*`)).toHaveLength(1);
    expect(dev.stderr()).not.toContain("starting Postgres");
    expect(await dev.stop(5000)).toEqual({ code: 0, signal: null });
  } finally {
    client.disconnect();
    await dev.stop();
  }
});

test("postern dev keeps events in EVENTS_REDIS_URL within its memory budget", async () => {
  const own = await startOwnRedis();
  const [shared, ofEvents] = [new Redis(redis.url), new Redis(own.url)];
  // Keys of the previous start.
  const left = await shared.keys(`${redis.prefix}*:events*`);
  if (left.length > 0) await shared.del(left);
  const dev = await startDev({ EVENTS_REDIS_URL: own.url, POSTERN_EVENTS_MEMORY: "12" });
  try {
    const { apiUrl } = JSON.parse(dev.stdout()) as { apiUrl: string };
    await waitFor("the quota", async () => (await ofEvents.keys(`${redis.prefix}*:events-quota:*`)).length === 1);
    expect(await shared.keys(`${redis.prefix}*:events*`)).toEqual([]);
    expect(await ofEvents.keys(`${redis.prefix}*:p:*`)).toEqual([]);
    const budget = `postern_events_budget_bytes ${12 * 1024 * 1024}\n`;
    await waitFor("the budget", async () => (await (await fetch(`${apiUrl}/metrics`)).text()).includes(budget));
  } finally {
    for (const client of [shared, ofEvents]) client.disconnect();
    await dev.stop();
    await own.stop();
  }
});

test("postern dev reports ready only after its gate has the policy", async () => {
  const db = new pg.Client({ connectionString: database.url });
  await db.connect();
  // While the test holds the relay's lock, nothing is projected from Postgres to Redis.
  await db.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.relay]);
  await db.query("truncate policies");
  const client = new Redis(redis.url);
  const known = await client.keys(`${redis.prefix}*`);
  if (known.length > 0) await client.del(known);
  const starting = startDev();
  try {
    await waitFor("the policy to be in Postgres", async () => (await db.query("select from policies")).rowCount === 1, {
      deadlineMs: 60_000,
    });
    expect(await Promise.race([starting.then(() => "ready"), sleep(1000, "not ready")])).toBe("not ready");
    await db.query("select pg_advisory_unlock($1)", [ADVISORY_LOCKS.relay]);
    const { sidecarUrl } = JSON.parse((await starting).stdout()) as { sidecarUrl: string };
    expect((await fetch(`${sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
  } finally {
    await db.end();
    client.disconnect();
    await (await starting).stop();
  }
});
