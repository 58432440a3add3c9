import { createClient } from "@clickhouse/client";
import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openClient } from "../../api-server/analytics/clickhouse/client.ts";
import { emitForClickhouse } from "../../api-server/analytics/clickhouse/emit.ts";
import { migrateClickhouse } from "../../api-server/analytics/clickhouse/migrate.ts";
import { ratelimitRow, verificationRow } from "../../api-server/analytics/clickhouse/rows.ts";
import { ClickhouseReader } from "../../api-server/analytics/clickhouse/run.ts";
import { ARRIVING } from "../../api-server/analytics/clickhouse/schema.ts";
import { QueryRefused } from "../../api-server/analytics/contract.ts";
import { parse } from "../../api-server/analytics/dialect/parse.ts";
import { QueryProblem } from "../../api-server/analytics/dialect/problem.ts";
import { resolveQuery } from "../../api-server/analytics/dialect/resolve/resolve.ts";
import { createPool } from "../../api-server/store/pool.ts";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { createTestClickhouse, type TestClickhouse } from "../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { type Answer, differenceOf, readCell } from "./compare.ts";
import { CORPUS } from "./corpus/all.ts";
import type { CorpusQuery } from "./corpus/query.ts";
import { corpusEvents, MAIN, NOW_MS, VISIBLE_FROM_MS } from "./events.ts";
import { askOracle, loadOracle } from "./oracle.ts";

/*
 * The corpus through the store on ClickHouse: its own tables and views, and a text that is written from the tree. The answers are
 * those of ClickHouse to the caller's own text over flat tables.
 */

const LIMITS = { rowsMax: 200_000, timeoutMs: 30_000, memoryBytesMax: 4e9, answerBytesMax: 256 * 1024 * 1024 };

let database: TestDatabase;
let db: Pool;
let [oracle, stored]: TestClickhouse[] = [];
let client: ReturnType<typeof openClient>;
let reader: ClickhouseReader;

beforeAll(async () => {
  const events = corpusEvents();
  [oracle, stored] = [await createTestClickhouse(), await createTestClickhouse()];
  await loadOracle(oracle.url, events);
  database = await createTestDatabase();
  db = createPool(database.url);
  client = openClient(stored.url);
  await migrateClickhouse(client, db, { cluster: undefined });
  await load(stored.url, events);
  const watch = { failed: () => undefined, succeeded: () => undefined };
  reader = new ClickhouseReader({ client, watch, log: pino({ level: "silent" }) });
}, 180_000);

afterAll(async () => {
  await client?.close();
  await db?.end();
  await database?.drop();
  await oracle?.drop();
  await stored?.drop();
});

/** Through the views, in a few inserts: what ingestion adds to that has tests of its own. */
async function load(url: string, events: readonly UsageEvent[]): Promise<void> {
  const loader = createClient({ url });
  // Nothing is old enough to be dropped by the machine's clock.
  const keptDays = [60_000, 60_000, 60_000, 60_000, 60_000];
  for (let part = 0; part < 3; part++) {
    const of = { portionId: String(part).padStart(32, "0"), keptDays };
    const some = events.filter((_, i) => i % 3 === part);
    const rows = {
      verification: some.flatMap((event) => (event.type === "verification" ? [verificationRow(event, of)] : [])),
      ratelimit: some.flatMap((event) => (event.type === "ratelimit" ? [ratelimitRow(event, of)] : [])),
    };
    for (const kind of ["verification", "ratelimit"] as const) {
      const { table, columns } = ARRIVING[kind];
      await loader.insert({
        table,
        columns: columns as [string, ...string[]],
        values: rows[kind],
        format: "JSONCompactEachRow",
      });
    }
  }
  await loader.close();
}

async function ask(text: string, workspaceId = MAIN): Promise<Answer> {
  const query = emitForClickhouse(resolveQuery({ ...parse(text), text }), { nowMs: NOW_MS, rowsMax: LIMITS.rowsMax });
  const from = VISIBLE_FROM_MS;
  const visibleFrom = { raw: from, minute: from, hour: from, day: from, month: from };
  const scope = { workspaceId, within: undefined, nowMs: NOW_MS, visibleFrom };
  const { rowsJson } = await reader.query(query, { scope, limits: LIMITS });
  const names = query.columns.map(({ name }) => name);
  const rows = JSON.parse(rowsJson, readCell as (key: string, value: unknown) => unknown) as Record<string, unknown>[];
  return { names, rows: rows.map((row) => names.map((name) => row[name])) };
}

test("each query of the corpus has the rows that ClickHouse gives to the caller's own text", async () => {
  const wrong: string[] = [];
  const left = [...CORPUS];
  // Some at a time: most of what one takes is waiting.
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      for (let each = left.pop(); each !== undefined; each = left.pop()) {
        const complaint = await complaintAbout(each);
        if (complaint !== undefined) wrong.push(`${each.query}\n  ${complaint}`);
      }
    }),
  );
  expect(wrong).toEqual([]);
}, 300_000);

/** Returns what is wrong with the answer in words, or undefined. */
async function complaintAbout(each: CorpusQuery): Promise<string | undefined> {
  const { query, oracle: asOracle = query, refused, fails = false } = each;
  try {
    const got = await ask(query);
    if (fails) return "is answered, and ClickHouse refuses it";
    const expected = await askOracle(oracle?.url ?? "", asOracle);
    return differenceOf(expected, got, each);
  } catch (error) {
    if (error instanceof QueryProblem)
      return refused === undefined && !fails ? `is refused: ${error.message}` : undefined;
    if (error instanceof QueryRefused) {
      return fails && error.reason === "query"
        ? undefined
        : `${error.message} ${String((error.cause as Error)?.message).slice(0, 300)}`;
    }
    return String(error);
  }
}
