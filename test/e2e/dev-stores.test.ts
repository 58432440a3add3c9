import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { startProcess } from "../harness/process.ts";
import { createTestRedis, type TestRedis } from "../harness/redis.ts";

const ROOT = resolve(import.meta.dirname, "../..");

let database: TestDatabase;
let redis: TestRedis;
let folder: string;
beforeAll(async () => {
  [database, redis] = await Promise.all([createTestDatabase(), createTestRedis()]);
  folder = mkdtempSync(join(tmpdir(), "postern-dev-stores-"));
});
afterAll(async () => {
  await Promise.all([database?.drop(), redis?.close()]);
  rmSync(folder, { recursive: true, force: true });
});

test("postern dev works on the Postgres of DATABASE_URL and the Redis of REDIS_URL, and starts none of its own", async () => {
  const args = ["cli/main.ts", "dev", "--json", "--data", folder, "--manifests", "examples/quickstart"];
  const dev = await startProcess(process.execPath, [...args, "--api-port", "0", "--sidecar-port", "0"], {
    cwd: ROOT,
    readyLine: /^\{.*"apiUrl".*\}$/m,
    env: { DATABASE_URL: database.url, REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: redis.prefix.slice(0, -1) },
  });
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
