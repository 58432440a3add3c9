import { type ClickHouseClient, createClient } from "@clickhouse/client";
import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import type { AnalyticsStore } from "../../../analytics/contract.ts";
import { PostgresAnalytics } from "../../../analytics/postgres/store.ts";
import { createPool } from "../../../postgres/pool.ts";
import { createTestClickhouse } from "../../harness/clickhouse.ts";
import { createTestDatabase } from "../../harness/postgres.ts";
import { COLUMNS, type Counts } from "./plain-count.ts";

export type Ingesting = Pick<
  AnalyticsStore,
  "kind" | "ingest" | "rollUp" | "maintain" | "countVerifications" | "close"
>;

export interface OpenedStore {
  readonly store: Ingesting;
  readonly db: Pool;
  /** Returns the counts of a table for a workspace. */
  counts(table: string, workspaceId: string): Promise<Counts>;
  /** Returns the number of raw rows of both kinds for a workspace. */
  rawRows(workspaceId: string): Promise<number>;
  close(): Promise<void>;
}

/** A fixed time shortly before the end of a month, where buckets of all kinds end. */
export const NOW_MS = Date.UTC(2042, 4, 31, 23, 30);

/** Both analytics stores as used by an api-server. */
export const STORES: { name: string; open(): Promise<OpenedStore> }[] = [
  { name: "on Postgres", open: openPostgres },
  { name: "on ClickHouse", open: openClickhouse },
];

async function openPostgres(): Promise<OpenedStore> {
  const database = await createTestDatabase();
  const db = createPool(database.url);
  const log = pino({ level: "silent" });
  const store = new PostgresAnalytics({ db, nowMs: () => NOW_MS, log, metrics: new Registry() });
  await store.maintain(NOW_MS);
  return {
    store,
    db,
    counts: async (table, workspaceId) => {
      const { dimensions, sums } = columnsOf(table);
      const select = [...dimensions, ...sums].map((name) =>
        name === "time" ? "extract(epoch from time)::bigint as time" : name,
      );
      const text = `select ${select.join(", ")} from ${table} where workspace_id = $1`;
      const { rows } = await db.query<unknown[]>({ text, values: [workspaceId], rowMode: "array" });
      return toCounts(rows, dimensions.length);
    },
    rawRows: async (workspaceId) => {
      const text = `select (select count(*) from verification_events where workspace_id = $1)
                         + (select count(*) from ratelimit_events where workspace_id = $1) as rows`;
      const { rows } = await db.query<{ rows: number }>(text, [workspaceId]);
      return Number(rows[0]?.rows);
    },
    close: async () => {
      await store.close();
      await db.end();
      await database.drop();
    },
  };
}

async function openClickhouse(): Promise<OpenedStore> {
  const [database, clickhouse] = [await createTestDatabase(), await createTestClickhouse()];
  const db = createPool(database.url);
  const store = new ClickhouseAnalytics({ url: clickhouse.url, db, cluster: undefined });
  const client = createClient({ url: clickhouse.url });
  return {
    store,
    db,
    counts: (table, workspaceId) => clickhouseCounts(client, table, workspaceId),
    rawRows: async (workspaceId) => {
      const query = `select (select count() from verification_events where workspace_id = {workspaceId:String})
                          + (select count() from ratelimit_events where workspace_id = {workspaceId:String})`;
      return Number((await rowsOf(client, query, workspaceId))[0]?.[0]);
    },
    close: async () => {
      await client.close();
      await store.close();
      await db.end();
      await clickhouse.drop();
      await database.drop();
    },
  };
}

/** Returns the counts of a ClickHouse table for a workspace. */
export async function clickhouseCounts(client: ClickHouseClient, table: string, workspaceId: string): Promise<Counts> {
  const { dimensions, sums } = columnsOf(table);
  const select = [...dimensions, ...sums].map((name) =>
    name === "time" ? "toInt64(toUnixTimestamp(toDateTime(c.time, 'UTC')))" : `c.${name}`,
  );
  const query = `select ${select.join(", ")} from ${table} as c final where c.workspace_id = {workspaceId:String}`;
  return toCounts(await rowsOf(client, query, workspaceId), dimensions.length);
}

async function rowsOf(client: ClickHouseClient, query: string, workspaceId: string): Promise<unknown[][]> {
  const response = await client.query({ query, query_params: { workspaceId }, format: "JSONCompactEachRow" });
  return await response.json<unknown[]>();
}

function columnsOf(table: string) {
  const columns = COLUMNS[table];
  if (columns === undefined) throw new Error(`${table} is no table of counts`);
  return columns;
}

/** Two rows with equal dimensions are an error and would hide each other here. */
function toCounts(rows: readonly (readonly unknown[])[], dimensions: number): Counts {
  const entries = rows.map((row) => [
    JSON.stringify(row.slice(0, dimensions).map((value) => (typeof value === "bigint" ? Number(value) : value))),
    row.slice(dimensions).map(Number),
  ]);
  const counts = Object.fromEntries(entries) as Counts;
  if (Object.keys(counts).length !== rows.length) throw new Error("two rows have the same dimensions");
  return counts;
}
