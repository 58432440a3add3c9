import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { checkUsage } from "./check-usage.ts";
import { seedUsage } from "./seed-usage.ts";
import type { Usage } from "./usage-formula.ts";

/* What the benchmarks of queries are measured on: rows as the ingestion would have written them, and indexes as a production has them. */

const INDEXES = `select i.indrelid::regclass::text as name,
                        pg_get_indexdef(i.indexrelid) as definition, i.indisready and i.indisvalid and i.indislive as used
                   from pg_index i join pg_class c on c.oid = i.indrelid
                  where c.relname ~ '^verification_' and c.relkind = 'r'`;

let database: TestDatabase;
let db: pg.Client;
let first: Usage;
let second: Usage;
beforeAll(async () => {
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  first = await seedUsage(database.url, { workspaceId: "ws_a", events: 3000, keys: 20, days: 3 });
  // Into the same partitions, and into those of a day before them.
  second = await seedUsage(database.url, { workspaceId: "ws_b", events: 4000, keys: 300, days: 4 });
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

test("load test seed creates full days of events with matching roll-ups", async () => {
  const { rows } = await db.query(
    `select workspace_id as workspace, count(*)::int as events, count(distinct day)::int as days, count(distinct key_id)::int as keys,
            count(distinct outcome)::int as outcomes, bool_and(day = (to_timestamp(time / 1000.0) at time zone 'UTC')::date) as fits
       from verification_events group by 1 order by 1`,
  );
  const both = { outcomes: 3, fits: true };
  expect(rows).toMatchObject([
    { ...both, workspace: "ws_a", events: 3000, days: 3, keys: 20 },
    { ...both, workspace: "ws_b", events: 4000, days: 4 },
  ]);
  expect(await checkUsage(db, first)).toMatch(/^3000 events: every rollup has their sum/);
  expect(await checkUsage(db, second)).toMatch(/^4000 events: every rollup has their sum/);
});

test("load test seed keeps every index valid and in use", async () => {
  const { rows } = await db.query<{ name: string; definition: string; used: boolean }>(INDEXES);
  expect(rows.filter(({ used }) => !used)).toEqual([]);
  const perTable = Map.groupBy(rows, ({ name }) => name.replace(/_[0-9]+$/, ""));
  const counts = [...perTable].map(([table, of]) => [table, of.length / new Set(of.map(({ name }) => name)).size]);
  expect(Object.fromEntries(counts)).toEqual({
    verification_events: 1,
    verification_counts_minute: 1,
    verification_counts_hour: 2,
    verification_counts_day: 2,
    verification_counts_month: 1,
    verification_totals_hour: 1,
    verification_key_totals_day: 1,
  });
  const again = "insert into verification_counts_hour select * from verification_counts_hour limit 1";
  await expect(db.query(again)).rejects.toThrow(/duplicate key/);
  await db.query("set enable_seqscan = off");
  const { rows: found } = await db.query(
    "select count(*)::int as n from verification_counts_hour where workspace_id = 'ws_a'",
  );
  await db.query("reset enable_seqscan");
  const { rows: scanned } = await db.query(
    "select count(*) filter (where workspace_id = 'ws_a')::int as n from verification_counts_hour",
  );
  expect(found).toEqual(scanned);
});

test.each([
  ["verification_counts_minute", "count = count + 1"],
  ["verification_counts_hour", "key_id = key_id || 'x'"],
  ["verification_totals_hour", "count = 0"],
  ["verification_key_totals_day", "count = 0"],
])("wrong row of %s in the load test seed is detected", async (table, change) => {
  await db.query("begin");
  const middle = first.days[1] ?? 0;
  await db.query(
    `update ${table} set ${change} where ctid in (select ctid from ${table} where workspace_id = 'ws_a'
        and time >= to_timestamp($1) at time zone 'UTC' and time < to_timestamp($1) at time zone 'UTC' + interval '1 day' limit 1)`,
    [middle / 1000],
  );
  await expect(checkUsage(db, first)).rejects.toThrow(new RegExp(table));
  await db.query("rollback");
});
