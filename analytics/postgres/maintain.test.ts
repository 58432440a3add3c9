import type { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { keepPartitions } from "./maintain.ts";
import { listPartitions } from "./partitions.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12, 34, 56, 789);
const DAY_MS = 86_400_000;
const LATER_MS = NOW_MS + 40 * DAY_MS;

let database: TestDatabase;
let db: Pool;
beforeEach(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 6 });
});
afterEach(async () => {
  await db.end();
  await database.drop();
});

const names = async (table: string): Promise<string[]> =>
  (await listPartitions(db)).map(({ name }) => name).filter((name) => name.startsWith(`${table}_2`));
const days = async (table: string): Promise<string[]> =>
  (await names(table)).map((name) => name.slice(table.length + 1));

test("analytics partitions are created and dropped over time by concurrent processes", async () => {
  await Promise.all([keepPartitions(db, NOW_MS), keepPartitions(db, NOW_MS)]);
  expect(await days("verification_events")).toEqual(["20420614", "20420615", "20420616", "20420617"]);
  expect(await days("ratelimit_counts_month")).toEqual(["204206"]);
  await Promise.all([keepPartitions(db, LATER_MS), keepPartitions(db, LATER_MS)]);
  expect(await days("verification_events")).toEqual(["20420724", "20420725", "20420726", "20420727"]);
  expect(await days("ratelimit_counts_minute")).toEqual(["20420724", "20420725", "20420726", "20420727"]);
  expect(await days("ratelimit_counts_month")).toEqual(["204206", "204207"]);
  expect((await listPartitions(db)).every(({ state }) => state === "attached")).toBe(true);
});

test("longer retention of one workspace keeps analytics partitions", async () => {
  await keepPartitions(db, NOW_MS);
  await db.query("insert into analytics_settings (workspace_id, verifications_days) values ('ws_1', 90), ('ws_2', 3)");
  await keepPartitions(db, LATER_MS);
  expect(await days("verification_events")).toContain("20420614");
  expect(await days("ratelimit_events")).not.toContain("20420614");
});

describe("a running query", () => {
  test("running analytics query blocks neither events nor new partitions", async () => {
    await keepPartitions(db, NOW_MS);
    const reader = await db.connect();
    try {
      await reader.query("begin");
      await reader.query("select count(*) from verification_events");
      await keepPartitions(db, NOW_MS + 10 * DAY_MS);
      expect(await days("verification_events")).toContain("20420625");
      const dropping = keepPartitions(db, LATER_MS);
      const isDetaching = async () => (await listPartitions(db)).some(({ state }) => state === "detaching");
      await waitFor("a partition to be detached", isDetaching);
      const insert = `insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id, outcome, source)
                      values ('2042-06-25', 'ev', '', 1, '', '', '', '', '', '')`;
      await db.query("set statement_timeout = 2000");
      await db.query(insert);
      await reader.query("commit");
      await dropping;
    } finally {
      reader.release(true);
    }
    expect(await days("verification_events")).not.toContain("20420614");
  });
});

test("an interrupted partition drop resumes, whether or not the detach was complete", async () => {
  await keepPartitions(db, NOW_MS);
  await db.query("alter table verification_events detach partition verification_events_20420614");
  const reader = await db.connect();
  await reader.query("begin");
  await reader.query("select count(*) from ratelimit_events");
  const dying = await db.connect();
  await dying.query("set statement_timeout = 1000");
  const detach = "alter table ratelimit_events detach partition ratelimit_events_20420614 concurrently";
  await expect(dying.query(detach)).rejects.toThrow("timeout");
  dying.release(true);
  reader.release(true);
  const states = new Map((await listPartitions(db)).map(({ name, state }) => [name, state]));
  expect(states.get("verification_events_20420614")).toBe("detached");
  expect(states.get("ratelimit_events_20420614")).toBe("detaching");
  await keepPartitions(db, LATER_MS);
  expect([...(await days("verification_events")), ...(await days("ratelimit_events"))]).not.toContain("20420614");
});
