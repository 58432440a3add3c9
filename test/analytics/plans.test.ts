import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CountQuery } from "../../analytics/counts.ts";
import { partitionAt } from "../../analytics/postgres/partition-plan.ts";
import { createPartition } from "../../analytics/postgres/partitions.ts";
import { STORED_TABLES } from "../../analytics/postgres/tables.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { seededKeyId } from "../load/seed.ts";
import { seedUsage } from "../load/seed-usage.ts";
import type { Usage } from "../load/usage-formula.ts";
import { lastWeek, type Plan, planOfCount, planOfQuery, weekByTheHour } from "./plans.ts";

/*
 * What questions about usage read: counts and no events, of the asked time and no other, and of a small workspace no more than its own rows
 * beside a large one.
 */

const DAYS = 9;
/** Of `lastWeek`. */
const WINDOW_DAYS = 7;

let database: TestDatabase;
let db: Pool;
let large: Usage;
let small: Usage;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  // Before the asked time, in another day and another month.
  for (const table of STORED_TABLES) await createPartition(db, partitionAt(table, Date.now() - 70 * DAY_MS));
  large = await seedUsage(database.url, { workspaceId: "ws_large", events: 40_000, keys: 400, days: DAYS });
  small = await seedUsage(database.url, { workspaceId: "ws_small", events: 400, keys: 10, days: DAYS });
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

/** Without sequential scans, which are right for tables as small as these. */
async function countPlan(usage: Usage, of: Partial<CountQuery> = {}): Promise<Plan> {
  const tx = await db.connect();
  try {
    await tx.query("begin; set local enable_seqscan = off");
    return await planOfCount(tx, { ...weekByTheHour(usage), ...of });
  } finally {
    await tx.query("rollback");
    tx.release();
  }
}

function queryPlan({ workspaceId, days }: Usage, text: string): Promise<Plan> {
  const fromMs = days[0] ?? 0;
  const visibleFrom = { raw: fromMs, minute: fromMs, hour: fromMs, day: fromMs, month: fromMs };
  return planOfQuery(database.url, text, { workspaceId, within: undefined, nowMs: Date.now(), visibleFrom });
}

/** A FROM with the bounds of the asked time. */
const between = (usage: Usage, bucket: string, more = "") => {
  const { fromMs, toMs } = lastWeek(usage);
  const literal = (ms: number) =>
    bucket === "hour"
      ? `'${new Date(ms).toISOString().slice(0, 19).replace("T", " ")}'`
      : `'${new Date(ms).toISOString().slice(0, 10)}'`;
  return `FROM key_verifications_per_${bucket}_v1 WHERE time >= ${literal(fromMs)} AND time < ${literal(toMs)}${more}`;
};
const topTen = (usage: Usage, more = "") =>
  `SELECT key_id, SUM(count) AS total ${between(usage, "day", more)} GROUP BY key_id ORDER BY total DESC LIMIT 10`;

/** The names of a table's partitions of the asked time. */
function partitionsOf(usage: Usage, name: string): string[] {
  const table = STORED_TABLES.find((each) => each.name === name);
  if (table === undefined) throw new Error(`there is no table ${name}`);
  return [...new Set(usage.days.slice(-WINDOW_DAYS).map((ms) => partitionAt(table, ms).name))].sort();
}

const partitionsRead = ({ scans }: Plan): string[] => [...new Set(scans.map(({ partition }) => partition))].sort();
const rowsRead = ({ scans }: Plan): number => scans.reduce((sum, { rows }) => sum + rows, 0);
const rowsExpected = ({ scans }: Plan): number => scans.reduce((sum, { expectedRows }) => sum + expectedRows, 0);

async function rowsStored(usage: Usage, table: string, where = "true"): Promise<number> {
  const { fromMs, toMs } = lastWeek(usage);
  const { rows } = await db.query(
    `select count(*)::int as n from ${table} where workspace_id = $1 and ${where}
        and time >= to_timestamp($2) at time zone 'UTC' and time < to_timestamp($3) at time zone 'UTC'`,
    [usage.workspaceId, fromMs / 1000, toMs / 1000],
  );
  return rows[0]?.n as number;
}

describe("v1, the hours of an API", () => {
  test("query plan of v1 hourly usage reads each matching row of the totals once", async () => {
    for (const usage of [large, small]) {
      const plan = await countPlan(usage);
      expect(partitionsRead(plan)).toEqual(partitionsOf(usage, "verification_totals_hour"));
      expect(rowsRead(plan)).toBe(await rowsStored(usage, "verification_totals_hour"));
      expect(rowsRead(plan)).toBeLessThanOrEqual(WINDOW_DAYS * 24 * 3);
    }
  });

  test("query plan of v1 hourly usage for one key uses its index", async () => {
    const keyId = seededKeyId(large.apiId, 3);
    const plan = await countPlan(large, { keyIds: [keyId] });
    expect(partitionsRead(plan)).toEqual(partitionsOf(large, "verification_counts_hour"));
    expect(rowsRead(plan)).toBe(await rowsStored(large, "verification_counts_hour", `key_id = '${keyId}'`));
  });
});

describe("analytics SQL, the ten most used keys", () => {
  test.each([
    { of: "all requests", more: "", table: "verification_key_totals_day" },
    { of: "one outcome", more: " AND outcome = 'VALID'", table: "verification_counts_day" },
  ])("analytics query plan for the top keys of $of reads only the needed daily totals", async ({ more, table }) => {
    const [few, many] = [await queryPlan(small, topTen(small, more)), await queryPlan(large, topTen(large, more))];
    expect(partitionsRead(few)).toEqual(partitionsOf(small, table));
    expect(partitionsRead(many)).toEqual(partitionsOf(large, table));
    expect(rowsRead(few)).toBe(await rowsStored(small, table));
    expect(rowsRead(many)).toBeGreaterThanOrEqual(await rowsStored(large, table));
    expect(rowsExpected(many)).toBeGreaterThan(10 * rowsExpected(few));
  });

  test("hourly analytics query plan reads only the needed partitions", async () => {
    const plan = await queryPlan(large, `SELECT key_id, SUM(count) AS n ${between(large, "hour")} GROUP BY key_id`);
    expect(partitionsRead(plan)).toEqual(partitionsOf(large, "verification_counts_hour"));
  });

  test.each([
    { name: "one key", where: (id: string) => `key_id = '${id}'` },
    { name: "a key in a list", where: (id: string) => `key_id IN ('${id}', 'key_missing')` },
  ])("analytics plan finds $name by its index with any database collation", async ({ where }) => {
    const keyId = seededKeyId(large.apiId, 3);
    for (const bucket of ["hour", "day"]) {
      const asked = between(large, bucket, ` AND ${where(keyId)}`);
      const plan = await queryPlan(large, `SELECT time, SUM(count) AS n ${asked} GROUP BY time`);
      expect(rowsRead(plan)).toBe(await rowsStored(large, `verification_counts_${bucket}`, `key_id = '${keyId}'`));
      expect(plan.scans.every(({ how }) => /workspace_id_key_id_time_idx/.test(how))).toBe(true);
    }
  });
});

test.each(["DESC", "ASC"])(
  "analytics query plan reads the first 50 events by time %s from the index",
  async (direction) => {
    const plan = await queryPlan(large, `SELECT * FROM key_verifications_v1 ORDER BY time ${direction} LIMIT 50`);
    expect(plan.scans.filter(({ how }) => !/^Index Scan.* by .*_events_\d+_pkey$/.test(how))).toEqual([]);
    // One of each partition, besides the fifty.
    expect(rowsRead(plan)).toBeLessThanOrEqual(50 + plan.scans.length);
  },
);
