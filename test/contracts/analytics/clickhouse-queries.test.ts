import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import type { QueryLimits, QueryScope } from "../../../analytics/contract.ts";
import { QueryRejected } from "../../../analytics/contract.ts";
import { emitForClickhouse } from "../../../analytics/dialect/clickhouse/emit.ts";
import { parse } from "../../../analytics/dialect/parse.ts";
import { resolveQuery } from "../../../analytics/dialect/resolve/resolve.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { createPool } from "../../../postgres/pool.ts";
import { createTestClickhouse, type TestClickhouse } from "../../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../../harness/postgres.ts";
import { anEvent } from "../edge/an-event.ts";
import { aName } from "../edge/edges.ts";
import { NOW_MS } from "./stores.ts";

/* Limits of a query on ClickHouse: its visible rows, its resources and its error messages. */

const LIMITS: QueryLimits = { rowsMax: 1_000, timeoutMs: 10_000, memoryBytesMax: 1e9, answerBytesMax: 4e6 };
const [mine, theirs] = [aName("ws"), aName("ws")];

let database: TestDatabase;
let clickhouse: TestClickhouse;
let db: Pool;
let store: ClickhouseAnalytics;

beforeAll(async () => {
  [database, clickhouse] = [await createTestDatabase(), await createTestClickhouse()];
  db = createPool(database.url);
  store = new ClickhouseAnalytics({ url: clickhouse.url, db, cluster: undefined });
  for (const workspaceId of [mine, theirs]) {
    const events = Array.from({ length: 60 }, (_, i) =>
      anEvent({ workspaceId, timeMs: NOW_MS - i * 3_600_00, keySpaceId: `ks_${i % 3}`, keyId: `key_${i}` }),
    );
    const lines = events.map((event) => JSON.stringify(event)).join("\n");
    await store.ingest(new EventLines(workspaceId, lines), NOW_MS);
  }
});
afterAll(async () => {
  await store?.close();
  await db?.end();
  await clickhouse?.drop();
  await database?.drop();
});

const from = (ms: number): QueryScope["visibleFrom"] => ({ raw: ms, minute: ms, hour: ms, day: ms, month: ms });

async function ask(
  text: string,
  {
    scope = {},
    limits = {},
    at = store,
  }: { scope?: Partial<QueryScope>; limits?: Partial<QueryLimits>; at?: ClickhouseAnalytics } = {},
): Promise<unknown> {
  const query = emitForClickhouse(resolveQuery({ ...parse(text), text }), { nowMs: NOW_MS, rowsMax: LIMITS.rowsMax });
  const whole: QueryScope = { workspaceId: mine, within: undefined, nowMs: NOW_MS, visibleFrom: from(0), ...scope };
  return JSON.parse((await at.query(query, { scope: whole, limits: { ...LIMITS, ...limits } })).rowsJson);
}

async function refusal(asked: Promise<unknown>): Promise<QueryRejected> {
  const error = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof QueryRejected)) throw new Error("was not refused", { cause: error });
  return error;
}

const RAW = "key_verifications_v1";

test("ClickHouse query reads only rows of its workspace, wherever the query names a table", async () => {
  const everywhere = `WITH w AS (SELECT workspace_id FROM ${RAW}) SELECT DISTINCT workspace_id AS id FROM (
    SELECT workspace_id FROM w WHERE 1 OR 1 UNION ALL SELECT workspace_id FROM key_verifications_per_hour_v1
    UNION ALL SELECT a.workspace_id FROM ${RAW} AS a JOIN key_verifications_per_day_v1 AS b ON a.key_id = b.key_id)`;
  expect(await ask(everywhere)).toEqual([{ id: mine }]);
  expect(await ask(`SELECT count() AS n FROM ${RAW} WHERE workspace_id = '${theirs}'`)).toEqual([{ n: 0 }]);
  expect(await ask(`SELECT count() AS n FROM ${RAW}`, { scope: { workspaceId: "' or 1=1 --" } })).toEqual([{ n: 0 }]);
});

test("ClickHouse query returns only rows of permitted key spaces, and none if no key space is permitted", async () => {
  for (const table of [RAW, "key_verifications_per_minute_v1", "key_verifications_per_month_v1"]) {
    const text = `SELECT DISTINCT key_space_id AS id FROM ${table} ORDER BY id`;
    expect(await ask(text, { scope: { within: ["ks_2", "ks_0'"] } })).toEqual([{ id: "ks_2" }]);
    expect(await ask(text, { scope: { within: [] } })).toEqual([]);
    expect(await ask(text)).toHaveLength(3);
  }
});

test("ClickHouse query sees raw rows from the retention bound on, and the complete bucket that contains the bound", async () => {
  const visibleFrom = from(NOW_MS - 90 * 60_000);
  expect(await ask(`SELECT count() AS n FROM ${RAW}`, { scope: { visibleFrom } })).toEqual([{ n: 16 }]);
  const hours = "SELECT min(time) AS first FROM key_verifications_per_hour_v1";
  expect(await ask(hours, { scope: { visibleFrom } })).toEqual([{ first: "2042-05-31T22:00:00Z" }]);
  const months = "SELECT sum(count) AS n FROM key_verifications_per_month_v1";
  expect(await ask(months, { scope: { visibleFrom } })).toEqual([{ n: 60 }]);
});

test("ClickHouse query has limits for rows, bytes, time and memory", async () => {
  const wide = `SELECT a.key_id AS k, groupArray(b.request_id) AS r FROM ${RAW} AS a CROSS JOIN ${RAW} AS b GROUP BY k`;
  expect((await refusal(ask(wide, { limits: { answerBytesMax: 2_000 } }))).reason).toBe("memory");
  expect((await refusal(ask(`SELECT key_id FROM ${RAW}`, { limits: { rowsMax: 10 } }))).reason).toBe("rows");
  const joins = Array.from({ length: 5 }, (_, i) => ` CROSS JOIN ${RAW} AS t${i}`).join("");
  const slow = `SELECT count() AS n FROM ${RAW} AS a${joins} WHERE concat(a.key_id, t0.key_id, t4.key_id) != t1.key_id`;
  expect((await refusal(ask(slow, { limits: { timeoutMs: 1_000 } }))).reason).toBe("timeout");
  const large = `SELECT length(groupArray(concat(a.key_id, t0.key_id, t1.key_id))) AS n FROM ${RAW} AS a${joins}`;
  expect((await refusal(ask(large, { limits: { memoryBytesMax: 30_000_000 } }))).reason).toBe("memory");
});

test("ClickHouse query errors reveal nothing about the database", async () => {
  const refused = await refusal(ask(`SELECT spent_credits % 0 AS n FROM ${RAW}`));
  expect(refused).toMatchObject({ reason: "query", message: "Division by zero." });
  const { hostname, port } = new URL(clickhouse.url);
  expect(refused.message).not.toMatch(new RegExp(`${mine}|verification_events|${hostname}|${port}|default`));
});

test("query reports ClickHouse as unavailable in bounded time if ClickHouse is silent or closed", async () => {
  const silent = createServer(() => undefined);
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  for (const url of [`http://u:p@127.0.0.1:${port}/db`, "http://u:p@127.0.0.1:1/db"]) {
    const away = new ClickhouseAnalytics({ url, db, cluster: undefined, requestMsMax: 2_000 });
    expect((await refusal(ask(`SELECT count() AS n FROM ${RAW}`, { at: away }))).reason).toBe("unavailable");
    await away.close();
  }
  silent.close();
});
