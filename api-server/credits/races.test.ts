import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { raiseLastUsed } from "../../analytics/last-used.ts";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { makeKeyString } from "../../core/keys/key-string.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { raiseSpent } from "../db/key-credits.ts";
import { type ApiServer, start } from "../start.ts";

/* Concurrent changes of credits and background writes. Dates are in the future, as for refills. */

const rootKey = makeKeyString({ prefix: "root", randomBytes: new Uint8Array(24).fill(7) }).key;
let database: TestDatabase;
let db: Pool;
let edge: Edge;
let api: ApiServer;
let workspaceId: string;
let apiId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  edge = createMemoryEdge();
  const logger = pino({ level: "silent" });
  api = await start({ databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, logger, rootKey });
  ({ workspaceId } = await api.devRootKey(rootKey));
  ({ apiId } = await call("apis.createApi", { name: "races" }));
});

afterAll(async () => {
  await api.close();
  await edge.close();
  await db.end();
  await database.drop();
});

async function call<P extends Procedure>(path: P, body: Input<P>): Promise<Data<P>> {
  const response = await fetch(`${api.url}/v2/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const reply = (await response.json()) as { data: Data<P> };
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${JSON.stringify(reply)}`);
  return reply.data;
}

const createKey = (credits: Input<"keys.createKey">["credits"] & {}): Promise<{ keyId: string; key: string }> =>
  call("keys.createKey", { apiId, credits });

interface StoredCredits {
  readonly rev: number;
  readonly granted: number;
  readonly spent: number;
}

async function stored(keyId: string): Promise<StoredCredits> {
  const { rows } = await db.query<StoredCredits>("select rev, granted, spent from key_credits where key_id = $1", [
    keyId,
  ]);
  const [row] = rows;
  if (row === undefined) throw new Error(`${keyId} has no credits`);
  return row;
}

/** The number of deadlocks that Postgres resolved. */
async function deadlocks(): Promise<number> {
  const { rows } = await db.query<{ deadlocks: number }>(
    "select pg_stat_clear_snapshot(), deadlocks from pg_stat_database where datname = current_database()",
  );
  return rows[0]?.deadlocks ?? -1;
}

test("spent credits are written to Postgres within a second", async () => {
  const { keyId, key } = await createKey({ remaining: 10 });
  for (let i = 0; i < 4; i++) await call("keys.verifyKey", { key });
  await waitFor("the write-behind", async () => (await stored(keyId)).spent === 4, { deadlineMs: 1000 });
});

test("writing spent credits ignores counters of old revisions and lower values, and never exceeds the granted credits", async () => {
  const { keyId } = await createKey({ remaining: 10 });
  const { rev: older } = await stored(keyId);
  await call("keys.updateKey", { keyId, credits: { remaining: 20 } });
  const { rev } = await stored(keyId);
  expect(rev).toBeGreaterThan(older);
  const raise = (seen: { rev: number; spent: number }) => raiseSpent(db, [{ workspaceId, keyId, ...seen }]);
  await raise({ rev: older, spent: 9 });
  expect((await stored(keyId)).spent).toBe(0);
  await raise({ rev, spent: 5 });
  await raise({ rev, spent: 3 });
  expect((await stored(keyId)).spent).toBe(5);
  await raise({ rev, spent: 50 });
  expect((await stored(keyId)).spent).toBe(20);
});

test.each([
  { how: "for good", body: { permanent: true } },
  { how: "softly", body: {} },
])("limited key that is deleted $how leaves no credit counter, even if credits are spent late", async ({ body }) => {
  const { keyId, key } = await createKey({ remaining: 10 });
  for (let i = 0; i < 3; i++) await call("keys.verifyKey", { key });
  const ref = { workspaceId, keyId };
  expect(await edge.credits.read([ref])).toMatchObject([{ granted: 10, spent: 3 }]);
  await call("keys.deleteKey", { keyId, ...body });
  expect(await edge.credits.read([ref])).toEqual([undefined]);
  await api.deps.credits.load([ref]);
  expect(await edge.credits.read([ref])).toEqual([undefined]);
  // The remaining credits of a softly deleted key are kept.
  const { rows } = await db.query("select granted - spent as remaining from key_credits where key_id = $1", [keyId]);
  expect(rows).toEqual("permanent" in body ? [] : [{ remaining: 7 }]);
});

test("concurrent updateKey and refill of one key neither deadlock nor lose changes", async () => {
  const before = await deadlocks();
  const { keyId } = await createKey({ remaining: 1, refill: { interval: "daily", amount: 10 } });
  let refills = 0;
  for (let day = 1; day <= 25; day++) {
    const today = `2051-01-${String(day).padStart(2, "0")}`;
    if (day === 1) await db.query("update key_credits set last_refill_on = '2050-12-31' where key_id = $1", [keyId]);
    const [refilled] = await Promise.all([
      api.refill(today),
      ...[1, 2, 3].map((i) => call("keys.updateKey", { keyId, name: `name ${day} ${i}`, credits: {} })),
      call("keys.updateKey", { keyId, credits: { refill: { interval: "daily", amount: 10 } } }),
    ]);
    refills += refilled?.refilled ?? 0;
  }
  const { granted, spent } = await stored(keyId);
  expect(granted - spent).toBe(1 + 10 * refills);
  expect(refills).toBeGreaterThan(0);
  // Statistics of a connection become visible when it is idle.
  await waitFor("the statistics", async () => (await deadlocks()) >= before);
  expect(await deadlocks()).toBe(before);
}, 60_000);

test("key changes and refills that share a connection pool do not block each other", async () => {
  const keys = await Promise.all(
    Array.from({ length: 20 }, () => createKey({ remaining: 100, refill: { interval: "daily", amount: 10 } })),
  );
  const ids = keys.map(({ keyId }) => keyId);
  await db.query("update key_credits set refill_amount = null where key_id <> all($1)", [ids]);
  const changeAll = () =>
    Promise.all(
      [...ids, ...ids, ...ids].map((keyId) => call("keys.updateCredits", { keyId, operation: "increment", value: 1 })),
    );
  await db.query("update key_credits set last_refill_on = '2052-01-01' where key_id = any($1)", [ids]);
  expect(await api.refill("2052-01-02")).toEqual({ refilled: 20, failed: 0 });
  await changeAll();
  expect(await api.refill("2052-01-03")).toEqual({ refilled: 20, failed: 0 });
  await changeAll();
  for (const keyId of ids) expect(await stored(keyId)).toMatchObject({ granted: 126 });
  await db.query("delete from keys where id = any($1)", [ids]);
}, 60_000);

test("writing credits and ingesting events of the same keys concurrently does not deadlock", async () => {
  const ids = Array.from({ length: 300 }, (_, i) => `key_circle_${i}`);
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select id, $1, $2, id, 's', 1 from unnest($3::text[]) as k (id)`,
    [workspaceId, apiId, ids],
  );
  await db.query(
    `insert into key_credits (key_id, workspace_id, rev, granted) select id, $1, 1, 1000000 from unnest($2::text[]) as k (id)`,
    [workspaceId, ids],
  );
  const turns = Array.from({ length: 40 }, (_, turn) => turn + 1);
  const [forwards, backwards] = [ids, ids.toReversed()];
  const write = async (order: readonly string[]) => {
    for (const spent of turns) {
      await raiseSpent(
        db,
        order.map((keyId) => ({ workspaceId, keyId, rev: 1, spent: spent * 2 })),
      );
      await raiseLastUsed(
        db,
        order.map((keyId) => ({ workspaceId, keyId, lastUsedAt: spent * 60_000 })),
      );
    }
  };
  await Promise.all([write(forwards), write(backwards), write(forwards), write(backwards)]);
  const { rows } = await db.query("select distinct spent from key_credits where key_id like 'key_circle_%'");
  expect(rows).toEqual([{ spent: 80 }]);
}, 60_000);
