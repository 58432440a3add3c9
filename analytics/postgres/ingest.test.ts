import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { MemoryEventStream } from "../../edge/events/memory.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";
import { aRatelimitEvent, aVerificationEvent } from "../../test/builders/usage-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import type { Ingested } from "../contract.ts";
import { ingestBatch } from "./ingest.ts";
import { keepPartitions } from "./maintain.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12, 34, 56, 789);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let database: TestDatabase;
let db: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  await keepPartitions(db, NOW_MS);
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

const aVerification = (given: Partial<VerificationEvent> = {}): VerificationEvent =>
  aVerificationEvent({
    timeMs: NOW_MS,
    keySpaceId: "ks_ws_a",
    apiId: "api_ws_a",
    keyId: "key_ws_a",
    spentCredits: 0,
    ...given,
  });
const aRatelimit = (given: Partial<RatelimitEvent> = {}): RatelimitEvent =>
  aRatelimitEvent({ timeMs: NOW_MS, ...given });

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

describe.each([
  { how: "by one statement", noted: () => undefined },
  { how: "by copying", noted: () => new Map<string, number>() },
])("stored $how:", ({ noted }) => {
  const take = (stream: MemoryEventStream) =>
    stream.take("ws_a", async (events) => void (await ingestBatch(db, events, { nowMs: NOW_MS, noted: noted() })));

  /** Ingests one batch per workspace. */
  async function ingest(events: readonly UsageEvent[]): Promise<Ingested[]> {
    const ingested: Ingested[] = [];
    for (const workspaceId of new Set(events.map((event) => event.workspaceId))) {
      const lines = events.filter((event) => event.workspaceId === workspaceId).map((event) => JSON.stringify(event));
      ingested.push(
        await ingestBatch(db, new EventLines(workspaceId, lines.join("\n")), { nowMs: NOW_MS, noted: noted() }),
      );
    }
    return ingested;
  }

  describe("an event", () => {
    test("ingester stores an event with all its members", async () => {
      const event = aVerification({
        identityId: "id_1",
        externalId: "user-1",
        outcome: "RATE_LIMITED",
        tags: ["path=/orders", "b"],
        region: "eu",
        appId: "pol_1",
        spentCredits: 7,
        latencyMs: 1.25,
      });
      await ingest([event]);
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
          app_id: "pol_1",
          region: "eu",
          spent_credits: 7,
          latency_ms: 1.25,
        },
      ]);
      const limited = aRatelimit({ overrideId: "rlor_1", passed: false, remaining: 0, cost: 3 });
      await ingest([limited]);
      const limits = await db.query("select * from ratelimit_events where id = $1", [limited.id]);
      expect(limits.rows).toMatchObject([
        { day: "2042-06-15", override_id: "rlor_1", passed: false, max_count: 10, remaining: 0, cost: 3 },
      ]);
    });

    test("ingester counts a duplicate event once, in one batch or in two", async () => {
      const events = [aVerification(), aRatelimit()];
      await ingest([...events, ...events]);
      await ingest(events);
      expect(await stored(events)).toHaveLength(2);
    });

    test("ingester counts an event once after a crash between commit and acknowledgement", async () => {
      const stream = new MemoryEventStream();
      const events = [aVerification(), aVerification(), aRatelimit()];
      const lines = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
      stream.append({ workspaceId: "ws_a", lines, count: events.length });
      const dying = stream.take("ws_a", async (taken) => {
        await ingestBatch(db, taken, { nowMs: NOW_MS, noted: noted() });
        throw new Error("died before it could acknowledge");
      });
      await expect(dying).rejects.toThrow("died");
      expect(await stored(events)).toHaveLength(3);
      await take(stream);
      expect(await stored(events)).toHaveLength(3);
      expect((await take(stream)).entries).toBe(0);
    });

    test("ingester stores events up to a day old and drops those from the future", async () => {
      const edges = {
        oldest: NOW_MS - DAY_MS + 1,
        late: NOW_MS - DAY_MS,
        newest: NOW_MS + HOUR_MS - 1,
        ahead: NOW_MS + HOUR_MS,
      };
      const of = (make: (given: { timeMs: number }) => UsageEvent) => ({
        kept: [make({ timeMs: edges.oldest }), make({ timeMs: edges.newest })],
        late: make({ timeMs: edges.late }),
        ahead: [make({ timeMs: edges.ahead }), make({ timeMs: 9e15 })],
      });
      const ofOtherKey = (given: { timeMs: number }) => aVerification({ ...given, keyId: "key_other" });
      const [verifications, ratelimits] = [of(ofOtherKey), of(aRatelimit)];
      const kept = [...verifications.kept, ...ratelimits.kept];
      const others = [verifications.late, ratelimits.late, ...verifications.ahead, ...ratelimits.ahead];
      expect(await ingest([...others, ...kept])).toEqual([{ stored: 4, late: 2, omitted: 4 }]);
      expect(await stored([...others, ...kept])).toEqual(kept.map(({ id }) => id).sort());
      expect(await ingest([...others, ...kept])).toEqual([{ stored: 0, late: 2, omitted: 4 }]);
    });

    test("ingester finds the partition of an event when partition maintenance is late", async () => {
      await keepPartitions(db, NOW_MS + 90 * DAY_MS);
      const event = aVerification();
      expect(await ingest([event])).toEqual([{ stored: 1, late: 0, omitted: 0 }]);
      expect(await stored([event])).toEqual([event.id]);
    });

    test.each<[string, object]>([
      ["of another type", { type: "other" }],
      ["of no type", { type: undefined }],
      ["of another workspace", { workspaceId: "ws_b" }],
      ["without an id", { id: undefined }],
      ["with an empty id", { id: "" }],
      ["with a long id", { id: "i".repeat(257) }],
      ["without a time", { timeMs: null }],
      ["with a long key id", { keyId: "k".repeat(257) }],
      ["with a long key space", { keySpaceId: "k".repeat(257) }],
      ["with a long outcome", { outcome: "V".repeat(65) }],
      ["of another source", { source: "app" }],
      ["without a source", { source: null }],
      ["without tags", { tags: null }],
      ["with a tag that is nothing", { tags: ["a", null] }],
      ["with tags in tags", { tags: [["a"], ["b"]] }],
      ["with negative credits", { spentCredits: -1 }],
      ["with too many credits", { spentCredits: 2 ** 53 }],
      ["without a latency", { latencyMs: null }],
      ["with a negative latency", { latencyMs: -1 }],
      [
        "that is an empty object",
        Object.fromEntries(Object.keys(aVerification()).map((member) => [member, undefined])),
      ],
    ])("ingester drops an event %s, and stores the other events of the same statement", async (_, changes) => {
      const [strange, good] = [{ ...aVerification(), ...changes }, aVerification()];
      const lines = [strange, good].map((event) => JSON.stringify(event)).join("\n");
      expect(await ingestBatch(db, new EventLines("ws_a", lines), { nowMs: NOW_MS, noted: noted() })).toEqual({
        stored: 1,
        late: 0,
        omitted: 1,
      });
    });

    test.each(["limit", "remaining", "resetMs", "cost"])(
      "ingester drops a rate limit event with negative %s",
      async (member) => {
        const lines = JSON.stringify({ ...aRatelimit(), [member]: -1 });
        expect(await ingestBatch(db, new EventLines("ws_a", lines), { nowMs: NOW_MS, noted: noted() })).toEqual({
          stored: 0,
          late: 0,
          omitted: 1,
        });
      },
    );
  });

  test("ingester stores the valid events of a batch that also has invalid events", async () => {
    const good = [aVerification(), aVerification({ workspaceId: "ws_b", keyId: "key_ws_b" })];
    const strange = [
      aVerification({ tags: ["a\u0000b"] }),
      aVerification({ externalId: "\ud800" }),
      aVerification({ spentCredits: 1.5 }),
      aRatelimit({ identifier: "nul \u0000" }),
      aRatelimit({ remaining: 0.1 }),
      aRatelimit({ resetMs: 1e300 }),
    ];
    await ingest([...strange, ...good]);
    expect(await stored(good)).toHaveLength(2);
  });

  describe("lastUsedAt", () => {
    test("lastUsedAt is the minute of the newest event and never goes back", async () => {
      const minute = NOW_MS - (NOW_MS % 60_000);
      await ingest([aVerification({ timeMs: NOW_MS - DAY_MS / 2 }), aVerification()]);
      expect(await lastUsed("key_ws_a")).toBe(minute);
      await ingest([aVerification({ timeMs: NOW_MS - DAY_MS / 2 })]);
      expect(await lastUsed("key_ws_a")).toBe(minute);
    });

    test("lastUsedAt ignores events of other workspaces and writes no outbox entries", async () => {
      await db.query("delete from outbox");
      const before = await lastUsed("key_ws_a");
      const event = aVerification({ workspaceId: "ws_b", keyId: "key_ws_a", timeMs: NOW_MS + HOUR_MS - 1 });
      await ingest([event]);
      expect(await lastUsed("key_ws_a")).toBe(before);
      const { rows } = await db.query("select from outbox");
      expect(rows).toEqual([]);
    });
  });
});
