import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { createPool } from "../../postgres/pool.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { type OwnRedis, startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { type ApiServer, start } from "../start.ts";

/*
 * One workspace's Redis user can write anything under its own prefix. Whatever it writes, another workspace's events are
 * still stored. The attacker's id sorts first, so its turn comes first.
 */

const ATTACKER = "ws_a_attacker";
const VICTIM = "ws_z_victim";
const BOUND_MS = 10_000;
/** After its earlier attacks, the attacker's turn may be delayed by up to 30 s. */
const PUT_OFF_MS = 40_000;

let database: TestDatabase;
let db: Pool;
let redis: OwnRedis;
let raw: Redis;
let edge: Edge;
let api: ApiServer;
const lines: string[] = [];
const stream = new RedisKeys().events(ATTACKER);

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 2 });
  for (const id of [ATTACKER, VICTIM]) {
    await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
  }
  redis = await startOwnRedis();
  raw = new Redis(redis.url);
  edge = await openRedisEdge({ url: redis.url, clientName: "hostile-test" });
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  api = await start({ databaseUrl: database.url, edge, host: "127.0.0.1", port: 0, logger });
});

afterAll(async () => {
  await api.close();
  await edge.close();
  raw.disconnect();
  await redis.stop();
  await db.end();
  await database.drop();
});

beforeEach(async () => {
  await raw.del(stream);
  lines.length = 0;
});

async function isStored(id: string): Promise<boolean> {
  const { rowCount } = await db.query("select from verification_events where id = $1", [id]);
  return rowCount === 1;
}

/** Adds an event and resolves when it is in Postgres. */
async function expectStored(workspaceId: string): Promise<void> {
  const event = anEvent({ workspaceId, timeMs: Date.now() });
  edge.sink.add(event);
  await edge.sink.flush();
  await waitFor(`an event of ${workspaceId}`, () => isStored(event.id), { deadlineMs: BOUND_MS });
}

const waitForEmpty = () =>
  waitFor("the stream to be empty", async () => (await raw.xlen(stream)) === 0, { deadlineMs: PUT_OFF_MS });

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

const line = (changes: object) =>
  JSON.stringify({ ...anEvent({ workspaceId: ATTACKER, timeMs: Date.now() }), ...changes });

describe("a stream key with another type", () => {
  test.each<[string, () => Promise<unknown>]>([
    ["string", () => raw.set(stream, "no stream")],
    ["list", () => raw.lpush(stream, "a")],
    ["hash", () => raw.hset(stream, "e", "a")],
    ["set", () => raw.sadd(stream, "a")],
    ["sorted set", () => raw.zadd(stream, 1, "a")],
  ])("ingester removes a stream key of type %s, logs it and continues", async (_, write) => {
    const before = await metric("postern_events_invalid_streams_total");
    await write();
    await expectStored(VICTIM);
    await expectStored(ATTACKER);
    expect(await metric("postern_events_invalid_streams_total")).toBe(before + 1);
    expect(lines.join("")).toContain(ATTACKER);
    expect(lines.join("")).not.toContain(VICTIM);
  });
});

describe("invalid entries", () => {
  test.each<[string, () => (string | Buffer)[][]]>([
    ["other fields", () => [["x", "y"], ["x", "y", "e", line({})], Array.from({ length: 5_000 }, (_, i) => `${i}`)]],
    ["an empty field", () => [["e", ""]]],
    [
      "no JSON, a NUL, halves of characters",
      () => [
        ["e", "\u0000"],
        ["e", "{"],
        ["e", Buffer.from([0xff, 0xfe, 0x80])],
      ],
    ],
    [
      "NULs inside of JSON",
      () => [
        ["e", line({ tags: ["a\u0000b"] })],
        ["e", line({ externalId: "\u0000" })],
      ],
    ],
    ["lone surrogates", () => [["e", line({ externalId: "\ud800" }).replace("\ud800", "\\ud800")]]],
    [
      "JSON that leaves its line",
      () => [
        ["e", `${line({})}],[`],
        ["e", `${"[".repeat(30_000)}${"]".repeat(30_000)}`],
      ],
    ],
    [
      "years that have no partition",
      () => [
        ["e", line({ timeMs: Date.UTC(275_000, 1, 1) })],
        ["e", line({ timeMs: 9e15 })],
      ],
    ],
    [
      "numbers out of range",
      () => [
        ["e", line({}).replace('"spentCredits":1', '"spentCredits":1e400')],
        ["e", line({ latencyMs: -1 })],
      ],
    ],
    ["the other workspace's name", () => [["e", line({ workspaceId: VICTIM })]]],
    ["ten megabytes, many times", () => Array.from({ length: 8 }, () => ["e", "x".repeat(10_000_000)])],
    ["ids as long as they like", () => [["e", line({ id: "i".repeat(60_000) })]]],
  ])("ingester continues after stream entries with %s", async (_, entries) => {
    for (const fields of entries()) await raw.xadd(stream, "*", ...fields);
    await expectStored(VICTIM);
    await expectStored(ATTACKER);
    await waitForEmpty();
  });
});

test("ingester stores an event only once, even if it is repeated many times", async () => {
  const event = anEvent({ workspaceId: ATTACKER, timeMs: Date.now() });
  for (let i = 0; i < 50; i++) await raw.xadd(stream, "*", "e", JSON.stringify(event));
  await expectStored(VICTIM);
  await waitFor("it to be stored", () => isStored(event.id));
});

test("ingester recovers when its consumer group is destroyed repeatedly", async () => {
  const until = performance.now() + 1_500;
  const destroying = (async () => {
    while (performance.now() < until) {
      await raw.xadd(stream, "*", "e", line({}));
      await raw.xgroup("DESTROY", stream, "ingest");
      await sleep(1);
    }
  })();
  await expectStored(VICTIM);
  await destroying;
  await expectStored(VICTIM);
  await expectStored(ATTACKER);
});

test("ingester recovers from a stream with the highest possible entry id", async () => {
  await raw.xadd(stream, "18446744073709551615-18446744073709551614", "e", line({}));
  await raw.xadd(stream, "18446744073709551615-18446744073709551615", "e", line({}));
  await expectStored(VICTIM);
  await waitFor("the stream to be usable", async () => (await raw.xlen(stream)) === 0);
  await expectStored(ATTACKER);
});

test("ingester serves other workspaces during a flood of events from one", async () => {
  const event = line({});
  const flood = raw.pipeline();
  for (let i = 0; i < 50_000; i++) flood.xadd(stream, "*", "e", event.replace("ev_", `ev_${i}_`));
  await flood.exec();
  await expectStored(VICTIM);
  expect(await raw.xlen(stream)).toBeGreaterThan(10_000);
  await waitForEmpty();
}, 90_000);

test("ingester serves other workspaces while a row of one is locked", async () => {
  const [apiId, keyId] = [`api_${randomUUID()}`, `key_${randomUUID()}`];
  await db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ($1, $2, 'ks_' || $1, 'x', 1)",
    [apiId, ATTACKER],
  );
  await db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ($1, $2, $3, 'hash of ' || $1, 's', 1)",
    [keyId, ATTACKER, apiId],
  );
  const holder = createPool(database.url, { connectionsMax: 1 });
  try {
    await holder.query("begin");
    await holder.query("select from keys where id = $1 for update", [keyId]);
    const entryId = (await raw.xadd(stream, "*", "e", line({ keyId }))) as string;
    const isTaken = async () => (await raw.xpending(stream, "ingest", entryId, entryId, 1)).length === 1;
    await waitFor("it to be taken", isTaken, { deadlineMs: PUT_OFF_MS });
    await expectStored(VICTIM);
    await holder.query("rollback");
  } finally {
    await holder.end();
  }
  await waitForEmpty();
}, 90_000);
