import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestClickhouse, type TestClickhouse } from "../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { CORPUS } from "./corpus/all.ts";
import { corpusEvents } from "./events.ts";
import { faultOf, judge } from "./judge.ts";
import { askOracle, loadOracle } from "./oracle.ts";
import { loadPostgres, openPostgresSide, type Side, withPool } from "./postgres-side.ts";

const MINUTES = 60_000;

let clickhouse: TestClickhouse;
let database: TestDatabase;
let side: Side;

beforeAll(async () => {
  [clickhouse, database] = [await createTestClickhouse(), await createTestDatabase()];
  const events = corpusEvents();
  await loadOracle(clickhouse.url, events);
  await withPool(database.url, (db) => loadPostgres(db, events));
  side = openPostgresSide(database.url);
}, 10 * MINUTES);

afterAll(async () => {
  await side?.close();
  await clickhouse?.drop();
  await database?.drop();
});

test("the corpus has at least 300 queries, none twice", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(300);
  expect(new Set(CORPUS.map(({ query }) => query)).size).toBe(CORPUS.length);
});

test(
  "ClickHouse refuses what the corpus says that it refuses",
  async () => {
    const wrong: string[] = [];
    for (const { query } of CORPUS.filter(({ fails }) => fails)) {
      const answer = await askOracle(clickhouse.url, query).catch(() => undefined);
      if (answer !== undefined) wrong.push(query);
    }
    expect(wrong).toEqual([]);
  },
  MINUTES,
);

test(
  "Postgres answers each query as ClickHouse does, or refuses what is to be refused",
  async () => {
    const wrong: string[] = [];
    for (const query of CORPUS) {
      const fault = faultOf({ query, verdict: await judge(clickhouse.url, side, query) });
      if (fault !== undefined) wrong.push(`${query.query}\n  ${fault}`);
    }
    expect(wrong).toEqual([]);
  },
  10 * MINUTES,
);
