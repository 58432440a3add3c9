import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { Redis } from "ioredis";
import { pino } from "pino";
import { Registry } from "prom-client";
import { migrateClickhouse } from "../../analytics/clickhouse/migrate.ts";
import { ClickhouseAnalytics } from "../../analytics/clickhouse/store.ts";
import { migrate } from "../../api-server/db/migrate.ts";
import { insertWorkspace } from "../../api-server/db/workspaces.ts";
import { IngestMetrics } from "../../api-server/ingest/ingest-metrics.ts";
import { Ingester } from "../../api-server/ingest/ingester.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { createPool } from "../../postgres/pool.ts";
import { startOwnClickhouse } from "../harness/clickhouse.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { median } from "./measure.ts";
import { type Section, timed } from "./section.ts";
import { eventLines } from "./usage-events.ts";

/* Storing usage events in ClickHouse. */

const KEYS = 10_000;
/** About two megabytes, which is what the ingester takes of a stream that has more. */
const BATCH = 4_000;
const PORTIONS = 8;
const ROWS = BATCH * PORTIONS;
/** As in an entry of a sidecar. */
const LINES_PER_ENTRY = 100;

/** Like the table of raw events, and nothing is made from its rows. */
const BARE = "bare_events";

/**
 * The rate of storing events out of their stream, compared with bare inserts of the same rows, as many at once: into the table from which
 * views fill all others, as ours do, and into a table by itself. The keys of events are random ones of many, so that counts have about as many rows
 * as there are events: the most that views can cost.
 */
export const clickhouseIngest: Section = async (environment, { rounds, progress }) => {
  const databaseUrl = await environment.createDatabase("clickhouse_ingest");
  await migrate(databaseUrl);
  const db = createPool(databaseUrl, { connectionsMax: 4 });
  const [clickhouse, redis] = [await startOwnClickhouse(), await startOwnRedis()];
  const writer = new Redis(redis.url);
  const edge = await openRedisEdge({ url: redis.url, clientName: "bench" });
  const client = createClient({ url: clickhouse.url });
  const store = new ClickhouseAnalytics({ url: clickhouse.url, db, cluster: undefined });
  const ingester = new Ingester({
    store,
    source: edge.events,
    nowMs: Date.now,
    log: pino({ level: "warn" }),
    metrics: new IngestMetrics(new Registry()),
  });
  try {
    await migrateClickhouse(client, db, { cluster: undefined });
    await client.command({ query: `create table ${BARE} as verification_events` });
    const ms = { stored: [] as number[], same: [] as number[], bare: [] as number[] };
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round += 1) {
      progress(`clickhouseIngest: round ${round} of ${rounds}`);
      const [own, other] = [`ws_own_${round}`, `ws_other_${round}`];
      await insertWorkspace(db, { id: own, name: own, createdAt: 1 });
      for (let n = 0; n < ROWS; n += LINES_PER_ENTRY) {
        const lines = eventLines({ workspaceId: own, apiId: "api_bench", keys: KEYS }, LINES_PER_ENTRY);
        await writer.xadd(new RedisKeys().events(own), "*", "e", lines.join("\n"));
      }
      const stored = await timed(async () => {
        while ((await ingester.round([own], { all: true })) !== "nothing");
      });
      // Another workspace's, because events that are there already would be left out.
      const portions = await rowsLike(client, { of: own, workspaceId: other });
      const ways = {
        same: () => insertAll(client, "arriving_verifications", portions),
        bare: () => insertAll(client, BARE, portions),
      };
      const names = ["same", "bare"] as const;
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const took = await timed(ways[name]);
        if (round > 0) ms[name].push(took);
      }
      if (round > 0) ms.stored.push(stored);
      for (const [table, workspaceId] of [
        ["verification_events", own],
        ["verification_events", other],
        [BARE, other],
      ] as const) {
        await expectRows(client, table, workspaceId);
      }
    }
    const perSecond = (all: readonly number[]) => ((1000 * ROWS) / median(all)).toFixed(0);
    return [
      { name: "the same tables", than: ms.same, max: 2 },
      { name: "a table without counts", than: ms.bare, max: 8 },
    ].map(({ name, than, max }) => {
      const ratios = ms.stored.map((each, n) => each / (than[n] ?? Number.NaN));
      return {
        name: `ClickHouse: time of storing events / bare insert into ${name}`,
        unit: "ratio" as const,
        value: median(ratios),
        max,
        detail: `${perSecond(ms.stored)} and ${perSecond(than)} events/s, pairs ${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
      };
    });
  } finally {
    await store.close();
    await edge.close();
    await client.close();
    writer.disconnect();
    await redis.stop();
    await clickhouse.stop();
    await db.end();
  }
};

/** The rows of a workspace as another one's, in portions, each the body of an insert. */
async function rowsLike(
  client: ClickHouseClient,
  { of, workspaceId }: { of: string; workspaceId: string },
): Promise<string[]> {
  const query = `select e.* replace ({workspaceId:String} as workspace_id) from verification_events as e
                  where e.workspace_id = {of:String}`;
  const response = await client.query({ query, query_params: { workspaceId, of }, format: "JSONCompactEachRow" });
  const lines = (await response.text()).trimEnd().split("\n");
  return Array.from({ length: PORTIONS }, (_, n) => lines.slice(n * BATCH, (n + 1) * BATCH).join("\n"));
}

async function insertAll(client: ClickHouseClient, table: string, portions: readonly string[]): Promise<void> {
  for (const rows of portions) {
    const values = Readable.from([rows], { objectMode: false });
    const { stream } = await client.exec({ query: `insert into ${table} format JSONCompactEachRow`, values });
    await finished(stream.resume());
  }
}

async function expectRows(client: ClickHouseClient, table: string, workspaceId: string): Promise<void> {
  const query = `select toUInt32(count()) from ${table} where workspace_id = {workspaceId:String}`;
  const response = await client.query({ query, query_params: { workspaceId }, format: "JSONCompactEachRow" });
  const count = (await response.json<[number]>())[0]?.[0];
  if (count !== ROWS) throw new Error(`${table} has ${count} of ${ROWS} rows`);
}
