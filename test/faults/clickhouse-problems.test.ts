import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { pino } from "pino";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ApiServer, start } from "../../api-server/start.ts";
import type { Edge } from "../../edge/open.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { anEvent } from "../contracts/edge/an-event.ts";
import { type OwnClickhouse, startOwnClickhouse } from "../harness/clickhouse.ts";
import { createTestDatabase, type TestDatabase } from "../harness/postgres.ts";
import { type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * ClickHouse fails in each possible way while events arrive. An api-server stays ready and verifies keys, reports the problem, keeps the
 * events in Redis and stores each once after recovery.
 */

const WORKSPACES = ["ws_b_first", "ws_a_second"];

let database: TestDatabase;
let redis: OwnRedis;
let clickhouse: OwnClickhouse;
let client: ClickHouseClient;
let edge: Edge;
let pod: Edge;
let api: ApiServer;
let key: string;
let rootKey: string;

beforeAll(async () => {
  [database, redis, clickhouse] = [
    await createTestDatabase(),
    await startOwnRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] }),
    await startOwnClickhouse(),
  ];
  client = createClient({ url: clickhouse.url });
  [edge, pod] = [
    await openRedisEdge({ url: redis.url, clientName: "troubles-test" }),
    await openRedisEdge({ url: redis.url, clientName: "troubles-test" }),
  ];
  const logger = pino({ level: "silent" });
  const analytics = { url: clickhouse.url };
  api = await start({ databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, logger, analytics });
  for (const id of WORKSPACES) {
    await api.deps.db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  }
  rootKey = (await api.devRootKey(undefined)).rootKey;
  const { apiId } = await call("apis.createApi", { name: "payments" });
  key = (await call("keys.createKey", { apiId })).key as string;
  await waitFor("room for events to be shared out", async () => (await metric("postern_events_budget_bytes")) > 0);
}, 60_000);

afterAll(async () => {
  await api?.close();
  await edge?.close();
  await pod?.close();
  await client?.close();
  await clickhouse?.stop();
  await redis?.stop();
  await database?.drop();
});

async function call(procedure: string, body: object): Promise<Record<string, unknown>> {
  const reply = await fetch(`${api.url}/v2/${procedure}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(reply.status).toBe(200);
  return ((await reply.json()) as { data: Record<string, unknown> }).data;
}

async function degradations(): Promise<string[]> {
  const reply = await fetch(`${api.url}/readyz?verbose`);
  expect(reply.status).toBe(200);
  const { degradations } = (await reply.json()) as { degradations: { reason: string }[] };
  return degradations.map(({ reason }) => reason);
}

async function metric(line: string): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((each) => each.startsWith(`${line} `))
      ?.slice(line.length + 1) ?? 0,
  );
}

const isSeen = (reason: string) =>
  waitFor(`${reason} to be seen`, async () => (await degradations()).includes(reason), { deadlineMs: 30_000 });
const isOver = () =>
  waitFor("it to be over", async () => !(await degradations()).some((reason) => reason.startsWith("clickhouse")), {
    deadlineMs: 60_000,
  });

/** Events of all tests of this file. */
const added = new Set<string>();

/** Maximum number of events in flight in the pod. */
const ON_ITS_WAY_MAX = 2_000;

/** Adds events of both workspaces continuously until stopped, at the latest at the end of the test. */
function startLoad(): { end(): Promise<void> } {
  let isEnding = false;
  const running = (async () => {
    while (!isEnding) {
      for (let i = 0; i < 200; i++) {
        const workspaceId = WORKSPACES[i % 2] as string;
        const event = anEvent({ workspaceId, timeMs: Date.now(), keyId: `key_${i % 7}` });
        added.add(event.id);
        pod.sink.add(event);
      }
      await pod.sink.flush();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await pod.sink.flush();
  })();
  const end = async () => {
    isEnding = true;
    await running;
  };
  onTestFinished(end);
  return { end };
}

async function rows(query: string): Promise<unknown[][]> {
  const response = await client.query({ query, format: "JSONCompactEachRow" });
  return await response.json<unknown[]>();
}

/** Asserts that each event except the reported dropped ones is stored once. */
async function expectEachStoredOnce({ droppedMax = added.size / 10 } = {}): Promise<void> {
  const dropped = pod.sink.dropped();
  const of = `workspace_id in ('${WORKSPACES.join("','")}')`;
  await waitFor("the streams to be empty", async () => (await metric("postern_events_waiting_entries")) === 0, {
    deadlineMs: 60_000,
    everyMs: 200,
  });
  // The depth metric is polled and is 0 while it is unknown.
  const ids = await waitFor(
    "all that was not dropped",
    async () => {
      const stored = (await rows(`select id from verification_events where ${of}`)).map(([id]) => id as string);
      return stored.length >= added.size - dropped && stored;
    },
    { deadlineMs: 60_000, everyMs: 500 },
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !added.has(id))).toEqual([]);
  expect(dropped).toBeLessThanOrEqual(droppedMax);
  for (const table of ["minute", "hour", "day", "month"].map((each) => `verification_counts_${each}`)) {
    expect(await rows(`select toUInt32(sum(count)) from ${table} where ${of}`), table).toEqual([[ids.length]]);
  }
}

/** No event is dropped while Redis is available. */
const noneDropped = () => expect(pod.sink.dropped()).toBe(0);

async function keysAreServed(): Promise<void> {
  expect(await call("keys.verifyKey", { key })).toMatchObject({ valid: true });
}

test("ClickHouse killed under load is reported, and each event is stored once", async () => {
  const load = startLoad();
  await waitFor("events to arrive", async () => (await metric("postern_clickhouse_inserted_rows_total")) > 500, {
    deadlineMs: 30_000,
  });
  expect(await degradations()).toEqual([]);
  await clickhouse.kill();
  await isSeen("clickhouse_unavailable");
  await keysAreServed();
  expect(await metric(`postern_degraded{reason="clickhouse_unavailable"}`)).toBe(1);
  await waitFor("events to wait", async () => (await metric("postern_events_lag_seconds")) > 3, { deadlineMs: 20_000 });
  expect(await metric(`postern_clickhouse_failures_total{operation="insert",reason="unavailable"}`)).toBeGreaterThan(0);
  await clickhouse.restart();
  await isOver();
  await load.end();
  noneDropped();
  await expectEachStoredOnce();
  expect(Date.now() / 1000 - (await metric("postern_clickhouse_inserted_timestamp_seconds"))).toBeLessThan(60);
}, 180_000);

test("ClickHouse hanging under load is reported, and each event is stored once", async () => {
  const load = startLoad();
  process.kill(clickhouse.pid, "SIGSTOP");
  try {
    await isSeen("clickhouse_unavailable");
    await keysAreServed();
  } finally {
    process.kill(clickhouse.pid, "SIGCONT");
  }
  await isOver();
  await load.end();
  noneDropped();
  await expectEachStoredOnce();
}, 180_000);

test.each([
  { name: "disk full", reason: "disk_full", setting: "min_free_disk_bytes_to_perform_insert = 1000000000000000000" },
  { name: "too many parts", reason: "overloaded", setting: "parts_to_throw_insert = 1" },
  { name: "tables read-only", reason: "read_only", setting: "table_readonly = 1" },
])(
  "ClickHouse with $name reports $reason and later stores each event once",
  async ({ reason, setting }) => {
    const table = "verification_counts_hour";
    await client.command({ query: `system stop merges ${table}` });
    await client.command({ query: `alter table ${table} modify setting ${setting}` });
    const load = startLoad();
    await isSeen(`clickhouse_${reason}`);
    await keysAreServed();
    const failures = `postern_clickhouse_failures_total{operation="insert",reason="${reason}"}`;
    expect(await metric(failures)).toBeGreaterThan(0);
    await client.command({ query: `alter table ${table} reset setting ${setting.split(" ")[0]}` });
    await client.command({ query: `system start merges ${table}` });
    await isOver();
    await load.end();
    await expectEachStoredOnce();
  },
  180_000,
);

test("events survive a Redis kill under load and are stored once", async () => {
  const load = startLoad();
  await waitFor("a portion to be on its way", async () => (await metric("postern_events_waiting_entries")) > 0);
  let droppedMax = pod.sink.dropped();
  for (let i = 0; i < 3; i++) {
    const before = added.size;
    await redis.kill("SIGKILL");
    await isSeen("redis_unavailable");
    await redis.restart();
    await waitFor("it to be back", async () => !(await degradations()).includes("redis_unavailable"), {
      deadlineMs: 30_000,
    });
    // Events during the Redis outage and those in flight at its start.
    droppedMax += added.size - before + ON_ITS_WAY_MAX;
  }
  await load.end();
  await expectEachStoredOnce({ droppedMax });
}, 180_000);
