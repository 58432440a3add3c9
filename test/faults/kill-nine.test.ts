import { join } from "node:path";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool } from "../../api-server/store/pool.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import type { KeyRecord } from "../../core/verification/records.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { createTestRedis, type TestRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { aRootKey, Caller } from "./a-server.ts";

const KEYS = 24;
const KILLS = 3;

let database: TestDatabase;
let redis: TestRedis;
let db: Pool;
let edge: Edge;
let prefix: string;
const rootKey = aRootKey();

beforeAll(async () => {
  [database, redis] = await Promise.all([createTestDatabase(), createTestRedis()]);
  prefix = redis.prefix.replace(/:$/, "");
  db = createPool(database.url, { onIdleError: () => undefined });
  edge = await openRedisEdge({ url: redis.url, prefix, clientName: "faults-looking" });
});

afterAll(async () => {
  await edge.close();
  await db.end();
  await Promise.all([database.drop(), redis.close()]);
});

interface Child {
  readonly process: RunningProcess;
  readonly caller: Caller;
  readonly workspaceId: string;
}

async function startChild(): Promise<Child> {
  const config = { databaseUrl: database.url, redisUrl: redis.url, prefix, rootKey };
  const script = join(import.meta.dirname, "children/api-server.ts");
  const child = await startProcess(process.execPath, [script, JSON.stringify(config)], { readyLine: /\{"url".*\}\n/ });
  const { url, workspaceId } = JSON.parse(child.stdout().trim());
  return { process: child, caller: new Caller(url, rootKey), workspaceId };
}

/** A key that is renamed again and again: its name is a number, which must never be less than the one acknowledged. */
interface Renamed {
  readonly keyId: string;
  readonly hash: string;
  sent: number;
  acknowledged: number;
}

/** Renames the key until the server does not answer any more. */
async function renameUntilDead({ caller }: Child, key: Renamed): Promise<void> {
  for (;;) {
    key.sent += 1;
    const name = String(key.sent);
    try {
      await caller.data("keys.updateKey", { keyId: key.keyId, name: name.padStart(3, "0") });
    } catch {
      return;
    }
    key.acknowledged = key.sent;
  }
}

test(`kill -9 of the api-server ${KILLS} times while keys are being changed and made: nothing acknowledged is lost, everything projects after the restart`, async () => {
  let child = await startChild();
  const { workspaceId } = child;
  const { apiId } = await child.caller.data("apis.createApi", { name: "payments" });
  const keys: Renamed[] = [];
  for (let i = 0; i < KEYS; i++) {
    const { keyId, key } = await child.caller.data("keys.createKey", { apiId, name: "000" });
    keys.push({ keyId, hash: hashKey(key), sent: 0, acknowledged: 0 });
  }
  const created: string[] = [];

  for (let kill = 1; kill <= KILLS; kill++) {
    const before = keys.reduce((sum, key) => sum + key.acknowledged, 0);
    const creating = createUntilDead(child, apiId, created);
    const renaming = keys.map((key) => renameUntilDead(child, key));
    await waitFor("changes to be under way", () => keys.reduce((sum, key) => sum + key.acknowledged, 0) > before + 50);
    child.process.kill("SIGKILL");
    await Promise.all([...renaming, creating]);
    await child.process.exited;
    child = await startChild();
  }

  expect(created.length).toBeGreaterThan(0);
  await waitFor("an empty outbox", async () => {
    const { rows } = await db.query<{ depth: number }>("select count(*) as depth from outbox");
    return rows[0]?.depth === 0;
  });
  for (const key of keys) {
    const stored = await db.query<{ name: string }>("select name from keys where id = $1", [key.keyId]);
    const name = stored.rows[0]?.name ?? "";
    expect(Number(name)).toBeGreaterThanOrEqual(key.acknowledged);
    expect(Number(name)).toBeLessThanOrEqual(key.sent);
    expect((await readKey(workspaceId, key.hash))?.name).toBe(name);
  }
  for (const secret of created) {
    expect((await readKey(workspaceId, hashKey(secret)))?.workspaceId).toBe(workspaceId);
    expect((await child.caller.data("keys.verifyKey", { key: secret })).code).toBe("VALID");
  }
  const exit = await child.process.stop();
  expect(exit).toEqual({ code: 0, signal: null });
});

async function createUntilDead({ caller }: Child, apiId: string, created: string[]): Promise<void> {
  for (;;) {
    try {
      created.push((await caller.data("keys.createKey", { apiId })).key);
    } catch {
      return;
    }
  }
}

async function readKey(workspaceId: string, hash: string): Promise<KeyRecord | undefined> {
  return waitFor("the projected key", async () => {
    const batch = await edge.source.read([{ workspaceId, kind: "key", id: hash }]);
    const record = batch.usable ? batch.records[0] : undefined;
    return record?.state === "found" ? (record.data as KeyRecord) : undefined;
  });
}
