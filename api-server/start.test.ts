import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMemoryEdge, type Edge, openRedisEdge } from "../edge/open.ts";
import { createPool } from "../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { type OwnRedis, startOwnRedis } from "../test/harness/redis.ts";
import { waitFor } from "../test/harness/wait.ts";
import { type ApiServer, type ApiServerConfig, start } from "./start.ts";

const ROOT_KEY = "a-root-key-of-this-test-alone";
const CLOSE_MS_MAX = 5000;

let database: TestDatabase;
let lines: string[];
let closers: Array<() => Promise<unknown>>;

beforeEach(async () => {
  database = await createTestDatabase();
  lines = [];
  closers = [() => database.drop()];
});

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

type Options = Partial<Pick<ApiServerConfig, "rootKey" | "databaseUrl" | "encryptionKeys">>;

function startOn(edge: Edge, options: Options = {}): Promise<ApiServer> {
  return start({
    databaseUrl: database.url,
    edge,
    host: "127.0.0.1",
    port: 0,
    logger: pino({ level: "info" }, { write: (line: string) => void lines.push(line) }),
    ...options,
  });
}

async function started(edge: Edge, options: Options = {}): Promise<ApiServer> {
  const api = await startOn(edge, options);
  closers.push(() => api.close());
  return api;
}

function aMemoryEdge(): Edge {
  const edge = createMemoryEdge();
  closers.push(() => edge.close());
  return edge;
}

async function aRedisEdge(args: string[] = []): Promise<{ edge: Edge; redis: OwnRedis }> {
  const redis = await startOwnRedis({ args });
  closers.push(() => redis.stop());
  const edge = await openRedisEdge({ url: redis.url, clientName: "start-test" });
  closers.push(() => edge.close());
  return { edge, redis };
}

async function call(api: ApiServer, path: string, rootKey: string, body: unknown = {}) {
  const response = await fetch(`${api.url}/v2/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

interface Readiness {
  readonly status: string;
  readonly degradations: Array<{ reason: string; meaning: string }>;
}

async function readiness(api: ApiServer): Promise<Readiness> {
  return (await fetch(`${api.url}/readyz?verbose`)).json() as Promise<Readiness>;
}

async function isComplete(api: ApiServer): Promise<boolean> {
  const { status, degradations } = await readiness(api);
  return status === "ready" && degradations.length === 0;
}

/** Closes it, and returns how long that took. */
async function closeMs(api: ApiServer): Promise<number> {
  const startedAt = performance.now();
  await api.close();
  return performance.now() - startedAt;
}

/** Connections to the database, except the one that counts them. */
async function connections(): Promise<number> {
  const db = createPool(database.url, { connectionsMax: 1 });
  try {
    const { rows } = await db.query<{ n: number }>(
      `select count(*) as n
         from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    return rows[0]?.n ?? -1;
  } finally {
    await db.end();
  }
}

test("api-server has no degradation after the projection is complete, and closes in time without leaving connections open", async () => {
  const api = await started(aMemoryEdge(), { rootKey: ROOT_KEY });
  await waitFor("it to be whole", () => isComplete(api));
  expect((await call(api, "apis.createApi", ROOT_KEY, { name: "payments" })).status).toBe(200);
  expect(await closeMs(api)).toBeLessThan(CLOSE_MS_MAX);
  await expect(fetch(`${api.url}/livez`)).rejects.toThrow();
  await waitFor("the connections to be gone", async () => (await connections()) === 0);
});

test("configured root key is registered at each start with all permissions and the same id", async () => {
  const edge = aMemoryEdge();
  const first = await startOn(edge, { rootKey: ROOT_KEY });
  await first.close();
  const db = createPool(database.url);
  closers.push(() => db.end());
  await db.query("update root_keys set permissions = '{}', enabled = false");
  const second = await started(edge, { rootKey: ROOT_KEY });
  expect((await call(second, "apis.createApi", ROOT_KEY, { name: "payments" })).status).toBe(200);
  expect((await db.query("select id from root_keys")).rowCount).toBe(1);
});

test("error for a configured root key that is too short does not contain the root key", async () => {
  const short = "twenty-one-characters";
  expect(short).toHaveLength(21);
  const failure = await startOn(aMemoryEdge(), { rootKey: short }).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(Error);
  expect(String(failure)).toMatch(/at least 22/);
  expect(String(failure) + lines.join("")).not.toContain(short);
  await waitFor("the connections to be gone", async () => (await connections()) === 0);
});

test("each dev server start creates a root key and revokes the previous one", async () => {
  const edge = aMemoryEdge();
  const first = await startOn(edge);
  const { rootKey: old } = await first.devRootKey(undefined);
  expect((await call(first, "apis.createApi", old, { name: "payments" })).status).toBe(200);
  await first.close();
  const second = await started(edge);
  const { rootKey } = await second.devRootKey(undefined);
  expect((await call(second, "apis.createApi", rootKey, { name: "payments" })).status).toBe(200);
  expect((await call(second, "apis.createApi", old, { name: "payments" })).status).toBe(401);
});

test("revoking a root key takes effect on every replica immediately", async () => {
  const edge = aMemoryEdge();
  const replicas = [await started(edge, { rootKey: ROOT_KEY }), await started(edge)] as const;
  const status = async (api: ApiServer) => (await call(api, "apis.getApi", ROOT_KEY, { apiId: "api_none" })).status;
  expect(await Promise.all(replicas.map(status))).toEqual([404, 404]);
  await replicas[0].deps.db.query("update root_keys set deleted_at = 5");
  await waitFor("both to refuse", async () => (await Promise.all(replicas.map(status))).every((code) => code === 401), {
    deadlineMs: 3000,
  });
});

test("Redis with an eviction policy is reported as a degradation", async () => {
  const { edge } = await aRedisEdge(["--maxmemory-policy", "allkeys-lru"]);
  const api = await started(edge);
  await waitFor("the complaint to be the only one", async () => {
    const { status, degradations } = await readiness(api);
    return status === "ready" && degradations.map(({ reason }) => reason).join() === "redis_eviction_enabled";
  });
});

test("api-server starts without Redis, recovers once Redis is reachable, and closes in time", async () => {
  const { edge, redis } = await aRedisEdge();
  await redis.kill();
  const api = await started(edge, { rootKey: ROOT_KEY });
  const { status, degradations } = await readiness(api);
  expect([status, degradations.map(({ reason }) => reason)]).toEqual([
    "ready",
    ["redis_unavailable", "propagation_delayed"],
  ]);
  expect((await call(api, "apis.createApi", ROOT_KEY, { name: "payments" })).status).toBe(200);
  await redis.restart();
  await waitFor("it to be whole", () => isComplete(api));
  await redis.kill("SIGKILL");
  expect(await closeMs(api)).toBeLessThan(CLOSE_MS_MAX);
});

test("api-server closes in time while Redis hangs", async () => {
  const { edge, redis } = await aRedisEdge();
  const api = await started(edge);
  await waitFor("it to be whole", () => isComplete(api));
  process.kill(redis.pid, "SIGSTOP");
  try {
    expect(await closeMs(api)).toBeLessThan(CLOSE_MS_MAX);
  } finally {
    process.kill(redis.pid, "SIGCONT");
  }
});

test("api-server that cannot reach the database fails to start and releases all resources", async () => {
  const url = new URL(database.url);
  url.port = "1";
  await expect(startOn(aMemoryEdge(), { databaseUrl: url.href })).rejects.toThrow();
});

test("api-server metrics show the progress of the relay", async () => {
  const api = await started(aMemoryEdge());
  await waitFor("the first heartbeat", async () => {
    const text = await (await fetch(`${api.url}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    return (
      value("postern_relay_leading") === 1 &&
      value("postern_outbox_depth") === 0 &&
      Math.abs(value("postern_relay_as_of_timestamp_seconds") - Date.now() / 1000) < 5
    );
  });
});

test("recoverable key is decrypted after a restart only with the same encryption key", async () => {
  const encryptionKeys = [{ id: "one", secret: randomBytes(32) }] as const;
  const db = createPool(database.url, { connectionsMax: 1 });
  closers.push(() => db.end());
  const before = await started(aMemoryEdge(), { rootKey: ROOT_KEY, encryptionKeys });
  const dataOf = async (api: ApiServer, path: string, body: object) =>
    ((await call(api, path, ROOT_KEY, body)).body as { data: Record<"apiId" | "keyId" | "key" | "plaintext", string> })
      .data;
  const { apiId } = await dataOf(before, "apis.createApi", { name: "abc" });
  await db.query("update apis set key_encryption = true where id = $1", [apiId]);
  const { keyId, key } = await dataOf(before, "keys.createKey", { apiId, recoverable: true });
  await before.close();

  const asked = { keyId, decrypt: true };
  const after = await started(aMemoryEdge(), { rootKey: ROOT_KEY, encryptionKeys });
  expect((await dataOf(after, "keys.getKey", asked)).plaintext).toBe(key);
  await after.close();
  const without = await started(aMemoryEdge(), { rootKey: ROOT_KEY });
  expect((await call(without, "keys.getKey", ROOT_KEY, asked)).status).toBe(412);
  expect(lines.join()).not.toContain(key);
});
