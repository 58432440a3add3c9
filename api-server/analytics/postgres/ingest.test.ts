import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { MemoryEventStream } from "../../../edge/events/memory.ts";
import { createTestDatabase, type TestDatabase } from "../../../test/harness/postgres.ts";
import { createPool } from "../../store/pool.ts";
import { keepPartitions, storeEvents, storeTaken } from "./ingest.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12, 34, 56, 789);
const DAY_MS = 86_400_000;

let database: TestDatabase;
let db: Pool;
let ids = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  for (const ws of ["ws_a", "ws_b"]) {
    await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [ws]);
    await db.query(
      "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_' || $1, $1, 'ks_' || $1, 'x', 1)",
      [ws],
    );
    await db.query(
      `insert into keys (id, workspace_id, api_id, hash, start, created_at)
       values ('key_' || $1, $1, 'api_' || $1, 'hash ' || $1, 's', 1)`,
      [ws],
    );
  }
});

afterAll(async () => {
  await db.end();
  await database.drop();
});

const aVerification = (given: Partial<VerificationEvent> = {}): VerificationEvent => ({
  type: "verification",
  id: `ev_${ids++}`,
  requestId: "req_1",
  timeMs: NOW_MS,
  workspaceId: "ws_a",
  keySpaceId: "ks_ws_a",
  apiId: "api_ws_a",
  keyId: "key_ws_a",
  outcome: "VALID",
  tags: [],
  region: "",
  source: "sidecar",
  spentCredits: 0,
  latencyMs: 0.5,
  ...given,
});

const aRatelimit = (given: Partial<RatelimitEvent> = {}): RatelimitEvent => ({
  type: "ratelimit",
  id: `ev_${ids++}`,
  requestId: "req_2",
  timeMs: NOW_MS,
  workspaceId: "ws_a",
  namespaceId: "rlns_1",
  identifier: "user",
  passed: true,
  latencyMs: 1,
  limit: 10,
  remaining: 9,
  resetMs: NOW_MS + 1000,
  cost: 1,
  ...given,
});

async function stored(events: readonly UsageEvent[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from verification_events where id = any($1)
      union all select id from ratelimit_events where id = any($1) order by id`,
    [events.map(({ id }) => id)],
  );
  return rows.map(({ id }) => id);
}

async function lastUsed(keyId: string): Promise<number | null> {
  const { rows } = await db.query<{ at: number | null }>("select last_used_at as at from keys where id = $1", [keyId]);
  return rows[0]?.at ?? null;
}

const take = (stream: MemoryEventStream) =>
  stream.take("ws_a", async (events) => void (await storeTaken(db, events, NOW_MS)));

describe("an event", () => {
  test("is stored with all its members", async () => {
    const event = aVerification({
      identityId: "id_1",
      externalId: "user-1",
      outcome: "RATE_LIMITED",
      tags: ["path=/orders", "b"],
      region: "eu",
      spentCredits: 7,
      latencyMs: 1.25,
    });
    await storeEvents(db, [event], NOW_MS);
    const { rows } = await db.query("select * from verification_events where id = $1", [event.id]);
    expect(rows).toEqual([
      {
        day: "2042-06-15",
        id: event.id,
        request_id: "req_1",
        time: NOW_MS,
        workspace_id: "ws_a",
        key_space_id: "ks_ws_a",
        api_id: "api_ws_a",
        key_id: "key_ws_a",
        identity_id: "id_1",
        external_id: "user-1",
        outcome: "RATE_LIMITED",
        tags: ["path=/orders", "b"],
        source: "sidecar",
        region: "eu",
        spent_credits: 7,
        latency_ms: 1.25,
      },
    ]);
    const limited = aRatelimit({ overrideId: "rlor_1", passed: false, remaining: 0, cost: 3 });
    await storeEvents(db, [limited], NOW_MS);
    const limits = await db.query("select * from ratelimit_events where id = $1", [limited.id]);
    expect(limits.rows).toMatchObject([
      { day: "2042-06-15", override_id: "rlor_1", passed: false, max_count: 10, remaining: 0, cost: 3 },
    ]);
  });

  test("that comes twice, in one batch or in two, counts once", async () => {
    const events = [aVerification(), aRatelimit()];
    await storeEvents(db, [...events, ...events], NOW_MS);
    await storeEvents(db, events, NOW_MS);
    expect(await stored(events)).toHaveLength(2);
  });

  test("whose ingester died between the commit and the acknowledgement counts once", async () => {
    const stream = new MemoryEventStream();
    const events = [aVerification(), aVerification(), aRatelimit()];
    const lines = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
    stream.append({ workspaceId: "ws_a", lines, count: events.length });
    const dying = stream.take("ws_a", async (taken) => {
      await storeEvents(db, taken, NOW_MS);
      throw new Error("died before it could acknowledge");
    });
    await expect(dying).rejects.toThrow("died");
    expect(await stored(events)).toHaveLength(3);
    await take(stream);
    expect(await stored(events)).toHaveLength(3);
    expect((await take(stream)).entries).toBe(0);
  });

  test("of a day without a partition creates one; one older than the retention, or of next week, is left out", async () => {
    const [old, recent] = [
      aVerification({ timeMs: NOW_MS - 36 * DAY_MS }),
      aVerification({ timeMs: NOW_MS - 30 * DAY_MS }),
    ];
    const future = aRatelimit({ timeMs: NOW_MS + 7 * DAY_MS });
    await storeEvents(db, [old, recent, future], NOW_MS);
    expect(await stored([old, recent, future])).toEqual([recent.id]);
  });
});

test("events that cannot be stored do not affect the others", async () => {
  const good = [aVerification(), aVerification({ workspaceId: "ws_b", keyId: "key_ws_b" })];
  const strange = [
    aVerification({ tags: ["a\u0000b"] }),
    aVerification({ externalId: "\ud800" }),
    aVerification({ spentCredits: 1.5 }),
    aRatelimit({ identifier: "nul \u0000" }),
    aRatelimit({ remaining: 0.1 }),
    aRatelimit({ resetMs: 1e300 }),
  ];
  await storeEvents(db, [...strange, ...good], NOW_MS);
  expect(await stored(good)).toHaveLength(2);
});

describe("lastUsedAt", () => {
  test("follows the newest event, to the minute, and never goes back", async () => {
    const minute = NOW_MS - (NOW_MS % 60_000);
    await storeEvents(db, [aVerification({ timeMs: NOW_MS - DAY_MS }), aVerification()], NOW_MS);
    expect(await lastUsed("key_ws_a")).toBe(minute);
    await storeEvents(db, [aVerification({ timeMs: NOW_MS - DAY_MS })], NOW_MS);
    expect(await lastUsed("key_ws_a")).toBe(minute);
  });

  test("is not changed by another workspace's event, and leaves no marks for the pods", async () => {
    await db.query("delete from outbox");
    const before = await lastUsed("key_ws_a");
    const event = aVerification({ workspaceId: "ws_b", keyId: "key_ws_a", timeMs: NOW_MS + 3_600_000 });
    await storeEvents(db, [event], NOW_MS);
    expect(await lastUsed("key_ws_a")).toBe(before);
    const { rows } = await db.query("select from outbox");
    expect(rows).toEqual([]);
  });
});

test("partitions exist for today and the next two days, and those past the retention are dropped", async () => {
  const partitions = async () =>
    (
      await db.query<{ name: string }>(
        "select relname as name from pg_class where relname ~ '^verification_events_[0-9]{8}$' order by 1",
      )
    ).rows.map(({ name }) => name.slice(-8));
  await keepPartitions(db, NOW_MS);
  expect(await partitions()).toEqual(expect.arrayContaining(["20420615", "20420616", "20420617"]));
  await keepPartitions(db, NOW_MS + 36 * DAY_MS);
  expect(await partitions()).toEqual(expect.not.arrayContaining(["20420615"]));
  await Promise.all([keepPartitions(db, NOW_MS + 90 * DAY_MS), keepPartitions(db, NOW_MS + 90 * DAY_MS)]);
  expect(await partitions()).toEqual(["20420913", "20420914", "20420915"]);
});
