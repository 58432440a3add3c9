import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { type ApiServer, start } from "../start.ts";

/*
 * The job of api-v2.md section 10.2 on real rows. All dates are in the future, so that the server's own run, which is for
 * today, does not interfere.
 */

let database: TestDatabase;
let db: Pool;
let edge: Edge;
let api: ApiServer;
let workspaceId: string;
let keys = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  edge = createMemoryEdge();
  api = await start({ databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, logger: pino({ level: "silent" }) });
  const { rows } = await db.query<{ id: string }>("select id from workspaces");
  workspaceId = rows[0]?.id ?? "";
  await db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_refill', $1, 'ks_refill', 'refill', 1)",
    [workspaceId],
  );
});

// A failed attempt leaves its rows, which the next attempt and the other tests must not refill.
beforeEach(async () => {
  await db.query("alter table key_credits drop constraint if exists unlucky");
  await db.query("delete from keys where api_id = 'api_refill'");
});

afterAll(async () => {
  await api.close();
  await edge.close();
  await db.end();
  await database.drop();
});

interface Refilled {
  readonly remaining?: number;
  readonly amount?: number;
  readonly day?: number | null;
  readonly last: string;
  readonly enabled?: boolean;
  readonly expiresAt?: number | null;
  readonly deletedAt?: number | null;
}

async function aKey(options: Refilled): Promise<string> {
  const { remaining = 3, amount = 10, day = null, last, enabled = true, expiresAt = null, deletedAt = null } = options;
  const keyId = `key_refill_${keys++}`;
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, enabled, expires_at, deleted_at, created_at)
     values ($1, $2, 'api_refill', $1, 's', $3, $4, $5, 1)`,
    [keyId, workspaceId, enabled, expiresAt, deletedAt],
  );
  await db.query(
    `insert into key_credits (key_id, workspace_id, granted, refill_amount, refill_day, last_refill_on)
     values ($1, $2, $3, $4, $5, $6)`,
    [keyId, workspaceId, remaining, amount, day, last],
  );
  return keyId;
}

const remaining = (keyId: string) => api.deps.credits.readRemaining({ workspaceId, keyId });

async function audits(keyId: string): Promise<Array<{ event: string; actor: { type: string } }>> {
  const { rows } = await db.query<{ event: string; actor: { type: string } }>(
    "select event, actor from audit_log where targets @> jsonb_build_array(jsonb_build_object('id', $1::text))",
    [keyId],
  );
  return rows;
}

describe("a key with 3 credits and a refill of 10", () => {
  test.each([
    { name: "daily: has 13 on the next day", day: null, last: "2041-03-01", today: "2041-03-02", left: 13 },
    { name: "daily: is refilled once on one day", day: null, last: "2041-03-02", today: "2041-03-02", left: 3 },
    { name: "daily: gets three missed refills", day: null, last: "2041-02-27", today: "2041-03-02", left: 33 },
    { name: "daily: gets at most 31 missed refills", day: null, last: "2040-01-01", today: "2041-03-02", left: 313 },
    { name: "monthly: has 13 on its day", day: 15, last: "2041-04-01", today: "2041-04-15", left: 13 },
    { name: "monthly: has 3 on the day before", day: 15, last: "2041-04-01", today: "2041-04-14", left: 3 },
    { name: "monthly on day 31: is due on 30 April", day: 31, last: "2041-04-01", today: "2041-04-30", left: 13 },
    { name: "monthly on day 31: is not due on 29 April", day: 31, last: "2041-04-01", today: "2041-04-29", left: 3 },
    { name: "monthly on day 30: is due on 28 February", day: 30, last: "2041-02-01", today: "2041-02-28", left: 13 },
    { name: "monthly on day 29: is due on 29 February", day: 29, last: "2044-02-01", today: "2044-02-29", left: 13 },
    { name: "monthly on day 29: not on 28 February 2044", day: 29, last: "2044-02-01", today: "2044-02-28", left: 3 },
    {
      name: "monthly: gets the refills of two missed months",
      day: 31,
      last: "2041-01-31",
      today: "2041-03-31",
      left: 23,
    },
  ])("credit refill of 10 for a key with 3 credits is correct: $name", async ({ day, last, today, left }) => {
    const keyId = await aKey({ day, last });
    await api.refill(today);
    expect(await remaining(keyId)).toBe(left);
    const audited = left === 3 ? [] : [{ event: "key.update", actor: { type: "system" } }];
    expect(await audits(keyId)).toMatchObject(audited);
    await api.refill(today);
    expect(await remaining(keyId)).toBe(left);
    expect(await audits(keyId)).toHaveLength(audited.length);
    await db.query("delete from keys where id = $1", [keyId]);
  });
});

test("credit refill run on a day when no refill is due leaves the next due date unchanged", async () => {
  const keyId = await aKey({ day: 15, last: "2042-04-01" });
  for (const today of ["2042-04-10", "2042-04-14", "2042-04-15", "2042-04-16", "2042-05-14"]) await api.refill(today);
  expect(await remaining(keyId)).toBe(13);
  await api.refill("2042-05-20");
  expect(await remaining(keyId)).toBe(23);
  await db.query("delete from keys where id = $1", [keyId]);
});

test("credit refill includes disabled and expired keys and excludes deleted and unlimited ones", async () => {
  const last = "2042-06-01";
  const [disabled, expired] = [await aKey({ last, enabled: false }), await aKey({ last, expiresAt: 1 })];
  const [deleted, plain] = [await aKey({ last, deletedAt: Date.now() }), await aKey({ last })];
  await db.query("update key_credits set refill_amount = null where key_id = $1", [plain]);
  expect(await api.refill("2042-06-02")).toEqual({ refilled: 2, failed: 0 });
  expect(await remaining(disabled)).toBe(13);
  expect(await remaining(expired)).toBe(13);
  expect(await remaining(deleted)).toBe(3);
  expect(await remaining(plain)).toBe(3);
  await db.query("delete from keys where id = any($1)", [[disabled, expired, deleted, plain]]);
});

test("credit refill records its time, and records nothing if no key is due", async () => {
  const lastRefillAt = async (keyId: string) =>
    (await db.query("select last_refill_at, updated_at from keys where id = $1", [keyId])).rows[0];
  const [due, idle] = [await aKey({ last: "2042-06-10" }), await aKey({ day: 15, last: "2042-06-10" })];
  await api.refill("2042-06-11");
  const { last_refill_at, updated_at } = await lastRefillAt(due);
  expect(last_refill_at).toBeGreaterThan(Date.now() - 60_000);
  expect(last_refill_at).toBe(updated_at);
  expect(await lastRefillAt(idle)).toEqual({ last_refill_at: null, updated_at: null });
  await db.query("delete from keys where id = any($1)", [[due, idle]]);
});

test("refilled credits stop at 2^53 − 1", async () => {
  const keyId = await aKey({ remaining: 5, amount: Number.MAX_SAFE_INTEGER, last: "2042-07-01" });
  await api.refill("2042-07-03");
  expect(await remaining(keyId)).toBe(Number.MAX_SAFE_INTEGER);
  await db.query("delete from keys where id = $1", [keyId]);
});

test("credit refill accounts for spending that is not yet in Postgres, and the next verification starts from the refilled credits", async () => {
  const keyId = await aKey({ remaining: 8, last: "2042-08-01" });
  const ref = { workspaceId, keyId };
  await api.deps.credits.load([ref]);
  const spend = (cost: number) => api.deps.counters.consume({ limits: [], credits: { ...ref, cost } });
  expect((await spend(5)).credits).toEqual({ status: "spent", remaining: 3 });
  await api.refill("2042-08-02");
  expect((await spend(13)).credits).toEqual({ status: "spent", remaining: 0 });
  await db.query("delete from keys where id = $1", [keyId]);
});

test("key whose refill fails is counted as failed and retried, without delaying other keys", async () => {
  const last = "2042-09-01";
  const [first, unlucky, later] = [await aKey({ last }), await aKey({ last, remaining: 7 }), await aKey({ last })];
  // Postgres refuses the number that only this key would get.
  await db.query("alter table key_credits add constraint unlucky check (granted <> 17) not valid");
  try {
    expect(await api.refill("2042-09-02")).toEqual({ refilled: 2, failed: 1 });
  } finally {
    await db.query("alter table key_credits drop constraint unlucky");
  }
  expect([await remaining(first), await remaining(unlucky), await remaining(later)]).toEqual([13, 7, 13]);
  expect(await api.refill("2042-09-02")).toEqual({ refilled: 1, failed: 0 });
  expect(await remaining(unlucky)).toBe(17);
  expect(await audits(unlucky)).toHaveLength(1);
  await db.query("delete from keys where id = any($1)", [[first, unlucky, later]]);
});

test("credit refill handles partial batches with different last refill dates", async () => {
  const amount = 1_100;
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select 'key_mixed_' || md5(i::text), $1, 'api_refill', 'mixed_' || i, 's', 1 from generate_series(1, $2) i`,
    [workspaceId, amount],
  );
  await db.query(
    `insert into key_credits (key_id, workspace_id, granted, refill_amount, refill_day, last_refill_on)
     select 'key_mixed_' || md5(i::text), $1, 0, 1, case when i % 10 = 0 then 31 end, date '2042-10-01' - i % 7
       from generate_series(1, $2) i`,
    [workspaceId, amount],
  );
  const run = await api.refill("2042-10-02");
  const { rows } = await db.query(
    `select count(*) filter (where refill_day is null) as daily, count(*) filter (where refill_day is null
            and granted = date '2042-10-02' - (date '2042-10-01' - (select i % 7 from generate_series(1, $1::int) i
                                                  where key_id = 'key_mixed_' || md5(i::text)))) as right
       from key_credits where key_id like 'key_mixed_%'`,
    [amount],
  );
  expect(rows[0].right).toBe(rows[0].daily);
  const { rows: monthly } = await db.query(
    "select sum(granted)::int as granted from key_credits where key_id like 'key_mixed_%' and refill_day = 31",
  );
  // Of those with day 31, the ones last refilled before 30 September still had that date to come.
  expect(run).toEqual({ refilled: rows[0].daily + monthly[0].granted, failed: 0 });
  expect(await api.refill("2042-10-02")).toEqual({ refilled: 0, failed: 0 });
  await db.query("delete from keys where id like 'key_mixed_%'");
});

test("credit refill reloads credit counters in use and creates no counters for unused keys", async () => {
  const last = "2042-11-01";
  const [used, unused] = [await aKey({ last }), await aKey({ last })];
  await api.deps.credits.load([{ workspaceId, keyId: used }]);
  await api.refill("2042-11-02");
  const counters = await edge.credits.read([used, unused].map((keyId) => ({ workspaceId, keyId })));
  expect(counters).toMatchObject([{ granted: 13, spent: 0 }, undefined]);
  const spent = await api.deps.counters.consume({ limits: [], credits: { workspaceId, keyId: used, cost: 13 } });
  expect(spent.credits).toEqual({ status: "spent", remaining: 0 });
  await db.query("delete from keys where id = any($1)", [[used, unused]]);
});

test("credit refill pages through all keys exactly once, even with two concurrent runs", async () => {
  const amount = 1203;
  await db.query(
    `insert into keys (id, workspace_id, api_id, hash, start, created_at)
     select 'key_many_' || i, $1, 'api_refill', 'many_' || i, 's', 1 from generate_series(1, $2) i`,
    [workspaceId, amount],
  );
  await db.query(
    `insert into key_credits (key_id, workspace_id, granted, refill_amount, last_refill_on)
     select 'key_many_' || i, $1, 1, 2, '2043-01-01' from generate_series(1, $2) i`,
    [workspaceId, amount],
  );
  const runs = await Promise.all([api.refill("2043-01-02"), api.refill("2043-01-02")]);
  expect(runs.reduce((sum, run) => sum + (run?.refilled ?? 0), 0)).toBe(amount);
  const { rows } = await db.query(
    "select granted, count(*) as keys from key_credits where key_id like 'key_many_%' group by 1",
  );
  expect(rows).toEqual([{ granted: 3, keys: amount }]);
  // In a few transactions: a million, one by one, would take hours.
  const { rows: transactions } = await db.query(
    "select count(distinct c.xmin::text) as count from key_credits c where c.key_id like 'key_many_%'",
  );
  expect(transactions[0].count).toBeLessThan(10);
  await db.query("delete from keys where id like 'key_many_%'");
});

test("credit refill writes no outbox entries because key records exclude credits", async () => {
  const keyId = await aKey({ last: "2043-02-01" });
  const depth = async () =>
    (await db.query("select count(*) as n from outbox where kind in ('key', 'keyId')")).rows[0].n;
  while ((await depth()) > 0) await new Promise((done) => setTimeout(done, 20));
  const version = async () => (await edge.writer.state()).version;
  const before = await version();
  await api.refill("2043-02-02");
  expect(await remaining(keyId)).toBe(13);
  expect(await depth()).toBe(0);
  expect(await version()).toBe(before);
});
