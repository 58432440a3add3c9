import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryEventStream } from "../../edge/events/memory.ts";
import { createPool } from "../../postgres/pool.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { insertEventLines } from "./event-lines.ts";
import { ingestBatch } from "./ingest.ts";
import { keepPartitions } from "./maintain.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12, 34, 56, 789);
const times = { afterMs: NOW_MS - 86_400_000, beforeMs: NOW_MS + 86_400_000 };

let database: TestDatabase;
let db: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  await keepPartitions(db, NOW_MS);
  await db.query("insert into workspaces (id, name, created_at) values ('ws_1', 'a', 1)");
  await db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_1', 'ws_1', 'ks_1', 'x', 1)",
  );
  await db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ('key_1', 'ws_1', 'api_1', 'h', 's', 1)",
  );
});

afterAll(async () => {
  await db.end();
  await database.drop();
});

async function ids(): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>("delete from verification_events returning id");
  // Stored ids have the workspace as prefix.
  return rows.map(({ id }) => id.replace(/^ws_1\//, "")).sort();
}

test("event lines are stored once and unchanged, and lastUsedAt is set to the minute", async () => {
  const events = [anEvent({ timeMs: NOW_MS }), anEvent({ timeMs: NOW_MS, externalId: "ü\n" })];
  const lines = [...events, ...events].map((event) => JSON.stringify(event)).join("\n");
  await insertEventLines(db, { workspaceId: "ws_1", lines, ...times });
  expect(await ids()).toEqual(events.map(({ id }) => id).sort());
  const { rows } = await db.query("select last_used_at as at from keys where id = 'key_1'");
  expect(rows).toEqual([{ at: NOW_MS - (NOW_MS % 60_000) }]);
});

test("event lines of another workspace or outside the time range are excluded", async () => {
  const kept = anEvent({ timeMs: NOW_MS });
  const others = [anEvent({ timeMs: NOW_MS, workspaceId: "ws_2" }), anEvent({ timeMs: 1 }), anEvent({ timeMs: 9e15 })];
  const lines = [kept, ...others].map((event) => JSON.stringify(event)).join("\n");
  await insertEventLines(db, { workspaceId: "ws_1", lines, ...times });
  expect(await ids()).toEqual([kept.id]);
});

test.each([
  "no JSON",
  "{}",
  '"text"',
  JSON.stringify(anEvent({ timeMs: NOW_MS, tags: ["a\u0000"] })),
  JSON.stringify({ ...anEvent({ timeMs: NOW_MS }), spentCredits: 1e300 }),
  JSON.stringify({ ...anEvent({ timeMs: NOW_MS }), tags: [["x"]], keyId: null }),
])("invalid event line does not affect other lines: %s", async (line) => {
  const stream = new MemoryEventStream();
  const good = [anEvent({ timeMs: NOW_MS }), anEvent({ timeMs: NOW_MS })];
  const [first, second] = good.map((event) => JSON.stringify(event));
  stream.append({ workspaceId: "ws_1", lines: Buffer.from(`${first}\n${line}\n${second}\n`), count: 3 });
  await stream.take("ws_1", async (events) => void (await ingestBatch(db, events, { nowMs: NOW_MS })));
  expect(await ids()).toEqual(expect.arrayContaining(good.map(({ id }) => id)));
});
