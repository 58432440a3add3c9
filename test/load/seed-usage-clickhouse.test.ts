import { afterAll, beforeAll, expect, test } from "vitest";
import { openClient } from "../../analytics/clickhouse/client.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestClickhouse, type TestClickhouse } from "../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { seedUsage } from "./seed-usage.ts";
import { seedUsageClickhouse } from "./seed-usage-clickhouse.ts";

/* A measurement of two stores side by side compares their answers, so both must hold the same events. */

const COLUMNS =
  "id, time, key_space_id, key_id, identity_id, external_id, outcome, source, app_id, region, spent_credits";

let database: TestDatabase;
let clickhouse: TestClickhouse;
beforeAll(async () => {
  [database, clickhouse] = await Promise.all([createTestDatabase(), createTestClickhouse()]);
});
afterAll(async () => {
  await clickhouse.drop();
  await database.drop();
});

test("load test seed copies the events of Postgres to ClickHouse", async () => {
  const usage = await seedUsage(database.url, { workspaceId: "ws_a", events: 2000, keys: 50, days: 2 });
  const db = createPool(database.url);
  const client = openClient(clickhouse.url);
  try {
    await seedUsageClickhouse(clickhouse.url, db, usage);
    const text = `select concat_ws(' ', ${COLUMNS}, array_to_string(tags, ',')) as line from verification_events order by id collate "C"`;
    const { rows } = await db.query<{ line: string }>(text);
    const query = `select concatWithSeparator(' ', ${COLUMNS}, arrayStringConcat(tags, ',')) as line from verification_events order by id`;
    const response = await client.query({ query, format: "JSONEachRow" });
    expect(rows).toHaveLength(2000);
    expect(await response.json()).toEqual(rows);
  } finally {
    await client.close();
    await db.end();
  }
});
