import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openReadingClient } from "../../../analytics/clickhouse/client.ts";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import type { QueryLimits, QueryScope } from "../../../analytics/contract.ts";
import { readQuery } from "../../../analytics/dialect/check.ts";
import { emitForClickhouse } from "../../../analytics/dialect/clickhouse/emit.ts";
import { resolveQuery } from "../../../analytics/dialect/resolve/resolve.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { createPool } from "../../../postgres/pool.ts";
import { type OwnClickhouse, startOwnClickhouse } from "../../harness/clickhouse.ts";
import type { EngineRights } from "../../harness/parts/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../../harness/postgres.ts";
import { anEvent } from "../edge/an-event.ts";
import { NOW_MS } from "./stores.ts";

/*
 * The users of docs/administration.md with exactly the documented grants and profile. The engine has one user, so it is restarted as each;
 * it checks permissions as a server does.
 */

const SQL = /```sql\n(CREATE DATABASE[\s\S]*?)```/.exec(
  readFileSync(join(import.meta.dirname, "../../../docs/administration.md"), "utf8"),
)?.[1];

const HOUR_MS = 3_600_000;

let database: TestDatabase;
let db: Pool;
let clickhouse: OwnClickhouse;
let name: string;

beforeAll(async () => {
  [database, clickhouse] = [await createTestDatabase(), await startOwnClickhouse()];
  db = createPool(database.url, { connectionsMax: 2 });
  name = new URL(clickhouse.url).pathname.slice(1);
  await command("create database other", "create table other.t (id UInt32) engine = MergeTree order by id");
});
afterAll(async () => {
  await db?.end();
  await clickhouse?.stop();
  await database?.drop();
});

/** Returns the documented grants of a user for the database of this test. */
function rightsOf(user: string): EngineRights {
  const granted = [...(SQL ?? "").matchAll(/^GRANT (.*) TO (\w+);$/gm)].filter(([, , to]) => to === user);
  const grants = granted.map(([, grant = ""]) => grant.replace("postern.*", `${name}.*`));
  const [, readonly] =
    new RegExp(`^CREATE SETTINGS PROFILE ${user} SETTINGS readonly = (\\d);$`, "m").exec(SQL ?? "") ?? [];
  expect(grants.length).toBeGreaterThan(0);
  return { grants, ...(readonly === undefined ? {} : { profile: { readonly } }) };
}

async function command(...queries: string[]): Promise<void> {
  const client = createClient({ url: clickhouse.url, log: { level: ClickHouseLogLevel.OFF } });
  try {
    for (const query of queries) await client.command({ query });
  } finally {
    await client.close();
  }
}

const scope: QueryScope = {
  workspaceId: "ws_1",
  within: undefined,
  nowMs: NOW_MS,
  visibleFrom: { raw: 0, minute: 0, hour: 0, day: 0, month: 0 },
};
const limits: QueryLimits = { rowsMax: 100, timeoutMs: 10_000, memoryBytesMax: 1e9, answerBytesMax: 1e6 };

function aQuery(text: string) {
  const checked = readQuery(text, { of: "verifications", nowMs: NOW_MS, visibleFrom: scope.visibleFrom });
  return emitForClickhouse(resolveQuery(checked), { nowMs: NOW_MS, rowsMax: limits.rowsMax });
}

const events = (workspaceId: string) =>
  new EventLines(
    workspaceId,
    JSON.stringify(anEvent({ workspaceId, timeMs: NOW_MS - 1_000, keyId: `key_${workspaceId}` })),
  );

async function withStore<T>(
  readerUrl: string | undefined,
  work: (store: ClickhouseAnalytics) => Promise<T>,
): Promise<T> {
  const store = new ClickhouseAnalytics({ url: clickhouse.url, readerUrl, db, cluster: undefined });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

test("ClickHouse writer can create tables and store events only in its own database", async () => {
  await clickhouse.restart(rightsOf("postern"));
  await withStore(undefined, async (store) => {
    await store.maintain();
    for (const workspaceId of ["ws_1", "ws_2"]) {
      expect(await store.ingest(events(workspaceId), NOW_MS)).toMatchObject({ stored: 1 });
    }
    expect(await store.findProblem()).toBeUndefined();
    // Without a reader, the writer also runs queries.
    const query = aQuery("SELECT key_id FROM key_verifications_per_day_v1");
    expect((await store.query(query, { scope, limits })).rowsJson).toBe('[{"key_id":"key_ws_1"}]');
  });
  for (const query of ["insert into other.t select 1", "create database another", "select * from system.users"]) {
    await expect(command(query), query).rejects.toMatchObject({ type: "ACCESS_DENIED" });
  }
});

test("ClickHouse reader can run queries and count verifications within its limits", async () => {
  await clickhouse.restart(rightsOf("postern_reader"));
  await withStore(clickhouse.url, async (store) => {
    for (const table of ["key_verifications_v1", "key_verifications_per_hour_v1"]) {
      const response = await store.query(aQuery(`SELECT key_id FROM ${table}`), { scope, limits });
      expect(response.rowsJson, table).toBe('[{"key_id":"key_ws_1"}]');
    }
    const counted = await store.countVerifications({
      workspaceId: "ws_1",
      keySpaceIds: ["ks_1"],
      keyIds: undefined,
      identityId: undefined,
      tags: [],
      fromMs: NOW_MS - (NOW_MS % HOUR_MS) - HOUR_MS,
      toMs: NOW_MS - (NOW_MS % HOUR_MS) + HOUR_MS,
      slice: undefined,
      by: [],
      order: { by: "total", descending: true },
      rowsMax: 10,
    });
    expect(counted).toMatchObject([{ total: 1 }]);
    const slow = aQuery("SELECT count() FROM key_verifications_v1 a CROSS JOIN key_verifications_v1 b");
    await expect(store.query(slow, { scope, limits: { ...limits, memoryBytesMax: 1_000 } })).rejects.toMatchObject({
      reason: "memory",
    });
    expect(await store.findProblem()).toBeUndefined();
  });
});

test.each([
  "insert into DATABASE.verification_events (id) values ('x')",
  "alter table DATABASE.verification_events delete where 1",
  "create table DATABASE.t (a Int8) engine = Memory",
  "drop table DATABASE.verification_events",
  "select * from other.t",
  "select * from system.users",
  "select * from url('http://127.0.0.1:1/', LineAsString, 'a String')",
  "select * from file('/etc/passwd', LineAsString, 'a String')",
  "select * from remote('127.0.0.1', 'other.t')",
])("ClickHouse reader lacks permission to run %s", async (query) => {
  await expect(command(query.replace("DATABASE", name))).rejects.toMatchObject({ type: "ACCESS_DENIED" });
});

test("ClickHouse reader profile that forbids settings is reported as an error", async () => {
  await clickhouse.restart({ ...rightsOf("postern_reader"), profile: { readonly: 1 } });
  await withStore(clickhouse.url, async (store) => {
    const asked = store.query(aQuery("SELECT count() FROM key_verifications_v1"), { scope, limits });
    await expect(asked).rejects.toMatchObject({ reason: "unavailable" });
    expect(await store.findProblem()).toBe("access_denied");
  });
});

test("query through the ClickHouse writer is sent as read-only", async () => {
  await clickhouse.restart();
  const reader: ClickHouseClient = openReadingClient({ url: clickhouse.url });
  try {
    const query = `insert into ${name}.verification_events (id) values ('x')`;
    await expect(reader.command({ query })).rejects.toMatchObject({ type: "READONLY" });
  } finally {
    await reader.close();
  }
});
