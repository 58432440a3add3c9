import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { type ClickHouseClient, createClient } from "@clickhouse/client";
import fc from "fast-check";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import { AnalyticsUnavailable } from "../../../analytics/contract.ts";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { createPool } from "../../../postgres/pool.ts";
import { createTestClickhouse, startOwnClickhouse, type TestClickhouse } from "../../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../../harness/postgres.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent } from "../edge/an-event.ts";
import { aName } from "../edge/edges.ts";
import { type ClickhouseProxy, startClickhouseProxy } from "./clickhouse-proxy.ts";
import { aScenario } from "./deliveries.ts";
import { plainCounts } from "./plain-count.ts";
import { clickhouseCounts, NOW_MS } from "./stores.ts";

/* Failures between an ingester and ClickHouse. In each case, a batch that is delivered until it is stored is counted once. */

let database: TestDatabase;
let clickhouse: TestClickhouse;
let db: Pool;
let client: ClickHouseClient;
let proxy: ClickhouseProxy;
let store: ClickhouseAnalytics;

beforeAll(async () => {
  [database, clickhouse] = [await createTestDatabase(), await createTestClickhouse()];
  db = aPool();
  client = createClient({ url: clickhouse.url });
  proxy = await startClickhouseProxy(clickhouse.url);
  store = new ClickhouseAnalytics({ url: proxy.url, db, cluster: undefined });
  await store.maintain();
});
afterAll(async () => {
  await store.close();
  await proxy.close();
  await client.close();
  await db.end();
  await clickhouse.drop();
  await database.drop();
});

function aPool(): Pool {
  return createPool(database.url, { connectionsMax: 4, onIdleError: () => undefined });
}

const batchOf = (workspaceId: string, events: readonly UsageEvent[]) =>
  new EventLines(workspaceId, events.map((event) => JSON.stringify(event)).join("\n"));
const ingest = (workspaceId: string, events: readonly UsageEvent[]) =>
  store.ingest(batchOf(workspaceId, events), NOW_MS);
const someEvents = (workspaceId: string, count = 50) =>
  Array.from({ length: count }, (_, i) => anEvent({ workspaceId, timeMs: NOW_MS - i * 1_000, keyId: `key_${i % 7}` }));

async function aWorkspace(): Promise<string> {
  const id = aName("ws");
  await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  return id;
}

const keepVerifications = (workspaceId: string, days: number) =>
  db.query("insert into analytics_settings (workspace_id, verifications_days) values ($1, $2)", [workspaceId, days]);

async function expectCounts(workspaceId: string, events: readonly UsageEvent[]): Promise<void> {
  for (const [table, counts] of Object.entries(plainCounts(events))) {
    expect(await clickhouseCounts(client, table, workspaceId), table).toEqual(counts);
  }
}

test("ClickHouse inserts with lost responses are not counted twice", async () => {
  const lossy = fc.tuple(aScenario, fc.array(fc.boolean(), { minLength: 1, maxLength: 30 }));
  await fc.assert(
    fc.asyncProperty(lossy, async ([scenarioOf, lost]) => {
      const workspaceId = aName("ws");
      const { portions, deliveries } = scenarioOf(workspaceId);
      proxy.decide((nth) => ({ loseAnswer: lost[nth % lost.length] === true && nth < 40 }));
      const unstored: (readonly UsageEvent[])[] = [];
      for (const { batch, ends } of deliveries) {
        if (ends === "diedBefore") continue;
        const events = portions[batch] ?? [];
        await ingest(workspaceId, events).catch(() => unstored.push(events));
      }
      if (lost[0] === true) expect(unstored.length).toBeGreaterThan(0);
      proxy.decide(() => ({}));
      for (const events of unstored.toReversed()) await ingest(workspaceId, events);
      await expectCounts(workspaceId, portions.flat());
    }),
    { numRuns: 3, seed: 11, endOnFailure: true },
  );
}, 180_000);

test("partial ClickHouse insert is completed by redelivery", async () => {
  const workspaceId = await aWorkspace();
  const [first, second] = [someEvents(workspaceId), someEvents(workspaceId)];
  await ingest(workspaceId, first);
  for (const table of ["verification_counts_day", "verification_counts_minute", "verification_totals_hour"]) {
    await client.command({
      query: `alter table ${table} add constraint broken check workspace_id != '${workspaceId}'`,
    });
    await expect(ingest(workspaceId, second)).rejects.toThrow(/broken/);
    await expect(ingest(workspaceId, second)).rejects.toThrow(/broken/);
    await client.command({ query: `alter table ${table} drop constraint broken` });
  }
  await expect(expectCounts(workspaceId, [...first, ...second])).rejects.toThrow();
  // Data written beside the events may have changed since.
  await keepVerifications(workspaceId, 50);
  // A batch that shares events with the partially stored one and precedes it.
  const third = [...second.slice(10, 20), ...someEvents(workspaceId, 5)];
  await ingest(workspaceId, third);
  await ingest(workspaceId, second);
  await expectCounts(workspaceId, [...first, ...second, ...third]);
});

test("ClickHouse writer that hangs during a takeover adds no rows when it resumes", async () => {
  const workspaceId = aName("ws");
  const sleeperDb = aPool();
  const sleeper = new ClickhouseAnalytics({ url: proxy.url, db: sleeperDb, cluster: undefined, idleMsMax: 300 });
  const heir = new ClickhouseAnalytics({ url: clickhouse.url, db, cluster: undefined });
  onTestFinished(async () => {
    await Promise.all([sleeper.close(), heir.close()]);
    await sleeperDb.end();
  });
  await sleeper.maintain();
  const held = someEvents(workspaceId);
  // The writer has sent some of the events again in another stream entry.
  const repeated = [...held.slice(0, 20), ...someEvents(workspaceId, 10)];
  let wake: () => void = () => undefined;
  let sleeps = false;
  proxy.decide(() => ({
    before: () =>
      new Promise<void>((resolve) => {
        sleeps = true;
        wake = resolve;
      }),
  }));
  const sleeping = sleeper.ingest(batchOf(workspaceId, held), NOW_MS);
  const slept = expect(sleeping).rejects.toThrow();
  await waitFor("it to stand before its insert", () => sleeps);
  // The lock is lost now or soon.
  await waitFor("the heir's turn", () =>
    heir.ingest(batchOf(workspaceId, repeated), NOW_MS).then(
      () => true,
      () => false,
    ),
  );
  await heir.ingest(batchOf(workspaceId, held), NOW_MS);
  proxy.decide(() => ({}));
  wake();
  await slept;
  await expectCounts(workspaceId, [...held, ...repeated]);
});

test("unreachable or silent ClickHouse is reported as unavailable in bounded time", async () => {
  const silent = createServer(() => undefined);
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const workspaceId = aName("ws");
  const refusing = await startOwnClickhouse();
  await refusing.stop();
  for (const url of [refusing.url, `http://default:x@127.0.0.1:${port}/db`]) {
    const away = new ClickhouseAnalytics({ url, db, cluster: undefined, requestMsMax: 500 });
    const startedAt = performance.now();
    await expect(away.ingest(batchOf(workspaceId, someEvents(workspaceId)), NOW_MS)).rejects.toThrow(
      AnalyticsUnavailable,
    );
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await away.close();
  }
  silent.close();
});

test("ClickHouse is used again after an outage with its previous data", async () => {
  const own = await startOwnClickhouse();
  onTestFinished(() => own.stop());
  const returning = new ClickhouseAnalytics({ url: own.url, db, cluster: undefined });
  const ownClient = createClient({ url: own.url });
  onTestFinished(async () => {
    await returning.close();
    await ownClient.close();
  });
  const workspaceId = aName("ws");
  const [first, second] = [someEvents(workspaceId), someEvents(workspaceId)];
  await own.kill();
  const store = (events: readonly UsageEvent[]) => returning.ingest(batchOf(workspaceId, events), NOW_MS);
  await expect(store(first)).rejects.toThrow(AnalyticsUnavailable);
  await own.restart();
  expect(await store(first)).toMatchObject({ stored: 50 });
  await own.restart();
  expect(await store(first)).toMatchObject({ stored: 0 });
  await store(second);
  const table = "verification_counts_minute";
  expect(await clickhouseCounts(ownClient, table, workspaceId)).toEqual(plainCounts([...first, ...second])[table]);
});

test("after its database is replaced by an empty one, the ClickHouse store creates the tables and stores redelivered events", async () => {
  const own = await createTestClickhouse();
  const lasting = new ClickhouseAnalytics({ url: own.url, db, cluster: undefined });
  onTestFinished(async () => {
    await lasting.close();
    await own.drop();
  });
  const workspaceId = aName("ws");
  const [first, second] = [someEvents(workspaceId), someEvents(workspaceId)];
  expect(await lasting.ingest(batchOf(workspaceId, first), NOW_MS)).toMatchObject({ stored: 50 });
  const name = new URL(own.url).pathname.slice(1);
  await client.command({ query: `drop database ${name} sync` });
  await client.command({ query: `create database ${name}` });
  await expect(lasting.ingest(batchOf(workspaceId, second), NOW_MS)).rejects.toThrow(AnalyticsUnavailable);
  expect(await lasting.ingest(batchOf(workspaceId, second), NOW_MS)).toMatchObject({ stored: 50 });
});

test("ClickHouse rows beyond the workspace retention are dropped, raw rows and buckets separately", async () => {
  const [plain, longer] = [await aWorkspace(), await aWorkspace()];
  await keepVerifications(longer, 400);
  // The events were stored in time, 40 days ago by the system clock.
  const thenMs = Date.now() - 40 * 86_400_000;
  for (const workspaceId of [plain, longer]) {
    const events = [anEvent({ workspaceId, timeMs: thenMs }), aRatelimit(workspaceId, thenMs)];
    await store.ingest(batchOf(workspaceId, events), thenMs);
  }
  const tables = ["verification_events", "ratelimit_events", ...Object.keys(plainCounts([]))];
  for (const table of tables) await client.command({ query: `optimize table ${table} final` });
  const left = async (workspaceId: string) => {
    const counts = await Promise.all(
      tables.map(async (table) => {
        const query = `select toUInt32(count()) from ${table} where workspace_id = {workspaceId:String}`;
        const response = await client.query({ query, query_params: { workspaceId }, format: "JSONCompactEachRow" });
        return [table, (await response.json<[number]>())[0]?.[0]] as const;
      }),
    );
    return counts
      .filter(([, count]) => count !== 0)
      .map(([table]) => table)
      .sort();
  };
  const ratelimits = ["ratelimit_counts_day", "ratelimit_counts_month"];
  const isMonthKept = new Date(thenMs).getUTCMonth() === new Date(Date.now() - 31 * 86_400_000).getUTCMonth();
  expect((await left(plain)).filter((table) => table !== "verification_counts_month" || !isMonthKept)).toEqual(
    ratelimits,
  );
  expect(await left(longer)).toEqual(
    [...tables.filter((table) => table.startsWith("verification")), ...ratelimits].sort(),
  );
});

const aRatelimit = (workspaceId: string, timeMs: number): UsageEvent => ({
  type: "ratelimit",
  id: aName("ev"),
  requestId: "req_1",
  timeMs,
  workspaceId,
  namespaceId: "rlns_1",
  identifier: "u",
  passed: true,
  latencyMs: 1,
  limit: 1,
  remaining: 0,
  resetMs: timeMs,
  cost: 1,
});
