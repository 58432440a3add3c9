import { Redis } from "ioredis";
import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { createPool } from "../../postgres/pool.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { type OwnRedis, startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { type ApiServer, start } from "../start.ts";

/*
 * Events share a small Redis with counters, and Postgres accepts none of them for a while. Events without room are dropped and counted
 * by their writer; counters, credits, and another workspace's few events keep their room.
 */

const [FLOODING, QUIET] = ["ws_a_flooding", "ws_z_quiet"];
const MAXMEMORY_MIB = 24;

let database: TestDatabase;
let db: Pool;
let redis: OwnRedis;
let raw: Redis;
let api: ApiServer;
const edges: Edge[] = [];

async function openEdge(): Promise<Edge> {
  const edge = await openRedisEdge({ url: redis.url, clientName: "overflow-test" });
  edges.push(edge);
  return edge;
}

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 3 });
  for (const id of [FLOODING, QUIET]) {
    await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  }
  redis = await startOwnRedis({ args: ["--maxmemory", `${MAXMEMORY_MIB}mb`] });
  raw = new Redis(redis.url);
  const logger = pino({ level: "silent" });
  api = await start({ databaseUrl: database.url, edge: await openEdge(), host: "127.0.0.1", port: 0, logger });
});

afterAll(async () => {
  await api.close();
  for (const edge of edges) await edge.close();
  raw.disconnect();
  await redis.stop();
  await db.end();
  await database.drop();
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

const usedMemory = async () => Number(/^used_memory:(\d+)/m.exec(await raw.info("memory"))?.[1]);

test("flood of events fills only its share of Redis memory", async () => {
  await waitFor("a share for each", async () => (await metric("postern_events_budget_bytes")) > 0);
  const usedBefore = await usedMemory();
  const [pod, quietPod] = [await openEdge(), await openEdge()];
  const counters = pod.counters({ timeoutMs: 1_000 });
  const charge = { workspaceId: QUIET, scope: { kind: "name", value: "w" }, identifier: "u" } as const;
  const consume = () =>
    counters.consume({ limits: [{ ...charge, limit: 1e6, durationMs: 3_600_000, cost: 1, accuracy: "strict" }] });

  const holder = createPool(database.url, { connectionsMax: 1 });
  const quiet: string[] = [];
  let added = 0;
  const flood = async () => {
    for (let i = 0; i < 500; i++) pod.sink.add(anEvent({ workspaceId: FLOODING, timeMs: Date.now() }));
    added += 500;
    await pod.sink.flush();
  };
  try {
    // Nothing can be stored now: the ingesters' turns fail, and new events stay in Redis.
    await holder.query("begin");
    await holder.query("lock table verification_events in access exclusive mode");
    for (let round = 0; round < 200; round++) {
      await flood();
      if (round % 10 === 0) {
        const event = anEvent({ workspaceId: QUIET, timeMs: Date.now() });
        quiet.push(event.id);
        quietPod.sink.add(event);
        await quietPod.sink.flush();
        expect(await consume()).toMatchObject({ passed: true });
      }
    }
    expect(pod.sink.dropped()).toBeGreaterThan(50_000);
    expect(quietPod.sink.dropped()).toBe(0);
    // At most a quarter of the memory, plus the memory of two more connections.
    expect(await usedMemory()).toBeLessThan(usedBefore + (MAXMEMORY_MIB / 4 + 2) * 1024 * 1024);
    // Quotas are granted once a second, and a fast machine may finish before the flood gets the quota that the quiet workspace does not use.
    await waitFor("the depth and the age to be exported", async () => {
      await flood();
      const bytes = await metric("postern_events_waiting_bytes");
      return bytes > 1e6 && (await metric("postern_events_lag_seconds")) > 0.5;
    });
    await holder.query("rollback");
  } finally {
    await holder.end();
  }
  const stored = async () => {
    const { rows } = await db.query("select from verification_events where id = any($1)", [quiet]);
    return rows.length === quiet.length;
  };
  await waitFor("the quiet one's events to be stored", stored, { deadlineMs: 40_000 });
  await waitFor("all to be stored", async () => (await metric("postern_events_waiting_entries")) === 0, {
    deadlineMs: 60_000,
  });
  const { rows } = await db.query<{ count: number }>(
    "select count(*) from verification_events where workspace_id = $1",
    [FLOODING],
  );
  expect((rows[0]?.count ?? 0) + pod.sink.dropped()).toBe(added);
}, 120_000);
