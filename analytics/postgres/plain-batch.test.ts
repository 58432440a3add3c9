import * as fc from "fast-check";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";
import { anyText } from "../../test/builders/text.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { ingestBatch } from "./ingest.ts";
import { keepPartitions } from "./maintain.ts";
import { readPlainBatch } from "./plain-batch.ts";

const NOW_MS = Date.UTC(2042, 5, 15, 12, 34, 56, 789);
const times = { workspaceId: "ws_1", afterMs: NOW_MS - 1000, beforeMs: NOW_MS + 1000 };

let database: TestDatabase;
let db: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  await keepPartitions(db, NOW_MS);
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

async function stored(lines: string, noted: Map<string, number> | undefined): Promise<unknown> {
  const ingested = await ingestBatch(db, new EventLines("ws_1", lines), { nowMs: NOW_MS, noted });
  const raw = await db.query(
    "with deleted as (delete from verification_events returning *) select * from deleted order by id",
  );
  const groups = await db.query(
    `with taken as (delete from rollup_queue returning *)
     select t.events, t.groups, g.* from taken t, unnest(t.verifications) g order by g.*::text`,
  );
  return { ingested, raw: raw.rows, groups: groups.rows };
}

const text = fc.oneof(
  fc.constantFrom("", "null", "NULL", "{}", "(,)", '"', "\\", "\\N", "\\.", "\n", "\t", "\r", " ", "a b", '{"a"}', "'"),
  anyText({ maxLength: 12 }).map((any) => any.replaceAll("\u0000", "")),
);

/** Strings without escapes in JSON. */
const bareText = text.filter((any) => JSON.stringify(any) === `"${any}"`);

test.each([
  { name: "any texts", of: text },
  { name: "texts without an escape", of: bareText },
])(
  "events with $name are stored and counted alike by COPY and by INSERT",
  async ({ of }) => {
    const event = fc.record({
      keyId: of,
      keySpaceId: of,
      outcome: of,
      externalId: of,
      identityId: of,
      appId: of,
      region: of,
      requestId: of,
      tags: fc.array(of, { maxLength: 4 }),
      latencyMs: fc.constantFrom(0, 0.25, 1e-7, 1e21),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 4 }), async (all) => {
        const lines = all.map((given, n) =>
          JSON.stringify({ ...anEvent({ ...given, timeMs: NOW_MS }), id: `ev_${n}`, workspaceId: "ws_1" }),
        );
        if (of === bareText) expect(lines.join("")).not.toContain("\\");
        expect(readPlainBatch(lines.join("\n"), times)).toBeDefined();
        const copied = await stored(lines.join("\n"), new Map());
        expect(copied).toEqual(await stored(lines.join("\n"), undefined));
      }),
      { numRuns: 30, seed: 20 },
    );
  },
  60_000,
);

test.each<[string, object]>([
  ["is late", { timeMs: NOW_MS - 1000 }],
  ["lies ahead", { timeMs: NOW_MS + 1000 }],
  ["has a fraction where a count belongs", { spentCredits: 0.5 }],
  ["has a U+0000", { tags: ["a\u0000"] }],
  ["has half a character", { externalId: "\ud800" }],
  ["has a long id", { id: "i".repeat(257) }],
  ["is of another workspace", { workspaceId: "ws_2" }],
  ["has a number for a text", { keyId: 5 }],
  ["lacks a member", { outcome: undefined }],
])("event batch with an event that %s is not a plain batch for COPY", (_, changes) => {
  const plain = { ...anEvent({ timeMs: NOW_MS }), workspaceId: "ws_1" };
  const line = (event: object) => JSON.stringify(event);
  expect(readPlainBatch(line(plain), times)?.events).toBe(1);
  expect(readPlainBatch(`${line(plain)}\n${line({ ...plain, id: "ev_other", ...changes })}`, times)).toBeUndefined();
});

test.each(["", "no JSON", "null", "5", "[]", "{}"])(
  "event batch with line %j is not a plain batch for COPY",
  (other) => {
    const line = JSON.stringify({ ...anEvent({ timeMs: NOW_MS }), workspaceId: "ws_1" });
    expect(readPlainBatch(`${line}\n${other}`, times)).toBeUndefined();
  },
);

test("latency that JSON cannot represent is omitted by COPY and by INSERT", async () => {
  const line = JSON.stringify({ ...anEvent({ timeMs: NOW_MS, latencyMs: 7.5 }), workspaceId: "ws_1" });
  const endless = line.replace('"latencyMs":7.5', '"latencyMs":1e400');
  expect(JSON.parse(endless).latencyMs).toBe(Number.POSITIVE_INFINITY);
  const copied = await stored(endless, new Map());
  expect(copied).toEqual(await stored(endless, undefined));
  expect(copied).toMatchObject({ ingested: { stored: 0, omitted: 1 } });
});

test("duplicate events, which COPY rejects, are counted once", async () => {
  const line = (id: string) => JSON.stringify({ ...anEvent({ timeMs: NOW_MS }), id, workspaceId: "ws_1" });
  const [once, twice] = [`${line("ev_a")}\n${line("ev_b")}`, `${line("ev_a")}\n${line("ev_b")}\n${line("ev_a")}`];
  expect(await stored(twice, new Map())).toEqual(await stored(once, undefined));
});
