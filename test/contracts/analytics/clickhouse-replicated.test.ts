import { type ClickHouseClient, createClient } from "@clickhouse/client";
import fc from "fast-check";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { createPool } from "../../../postgres/pool.ts";
import { type OwnClickhouse, startOwnClickhouse } from "../../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../../harness/postgres.ts";
import { aName } from "../edge/edges.ts";
import { aScenario } from "./deliveries.ts";
import { plainCounts } from "./plain-count.ts";
import { clickhouseCounts, NOW_MS } from "./stores.ts";

/*
 * `--analytics-cluster`: tables with Replicated engines on one replica with Keeper in its process. docs/decisions/0017 describes two
 * replicas; this test has no ON CLUSTER queue and no second server.
 */

let database: TestDatabase;
let clickhouse: OwnClickhouse;
let db: Pool;
let client: ClickHouseClient;
let store: ClickhouseAnalytics;

beforeAll(async () => {
  [database, clickhouse] = [await createTestDatabase(), await startOwnClickhouse({ isReplicated: true })];
  db = createPool(database.url, { connectionsMax: 3 });
  client = createClient({ url: clickhouse.url });
  store = new ClickhouseAnalytics({ url: clickhouse.url, db, cluster: "all servers" });
  await store.maintain();
}, 60_000);
afterAll(async () => {
  await store?.close();
  await client?.close();
  await db?.end();
  await clickhouse?.stop();
  await database?.drop();
});

async function rows(query: string): Promise<unknown[][]> {
  return await (await client.query({ query, format: "JSONCompactEachRow" })).json<unknown[]>();
}

test("replicated ClickHouse tables accept writes", async () => {
  const stored = "engine not in ('Null', 'MaterializedView')";
  const engines = await rows(`select name, engine from system.tables where database = currentDatabase() and ${stored}`);
  expect(engines.length).toBe(12);
  for (const [name, engine] of engines) expect(engine, String(name)).toMatch(/^Replicated(Summing)?MergeTree$/);
  const replicas = await rows("select toUInt32(count()), toUInt32(sum(is_readonly)) from system.replicas");
  expect(replicas).toEqual([[12, 0]]);
});

test("replicated ClickHouse counts redelivered and duplicate events once", async () => {
  await fc.assert(
    fc.asyncProperty(aScenario, async (scenarioOf) => {
      const workspaceId = aName("ws");
      const { portions, deliveries } = scenarioOf(workspaceId);
      for (const { batch, ends } of deliveries) {
        if (ends === "diedBefore") continue;
        const lines = (portions[batch] ?? []).map((event) => JSON.stringify(event)).join("\n");
        await store.ingest(new EventLines(workspaceId, lines), NOW_MS);
      }
      for (const [table, counts] of Object.entries(plainCounts(portions.flat()))) {
        expect(await clickhouseCounts(client, table, workspaceId), table).toEqual(counts);
      }
    }),
    { numRuns: 4, seed: 3, endOnFailure: true },
  );
}, 120_000);
