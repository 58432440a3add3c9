import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { createTestDatabase, type TestDatabase } from "../../../test/harness/postgres.ts";
import { createPool } from "../../store/pool.ts";
import { COUNT_MAX } from "./event-lines.ts";
import { PostgresAnalytics } from "./store.ts";

const NOW_MS = Date.UTC(2042, 6, 1, 0, 30, 10);
const HOUR_MS = 3_600_000;

let database: TestDatabase;
let db: Pool;
let store: PostgresAnalytics;
const logs: string[] = [];
let metrics: Registry;
let ids = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 6 });
  await open().maintain(NOW_MS);
});
afterAll(async () => {
  await db.end();
  await database.drop();
});
beforeEach(async () => {
  logs.length = 0;
  store = open();
  await db.query(`truncate rollup_queue, verification_counts_minute, verification_counts_hour, verification_counts_day,
                           verification_counts_month, verification_totals_hour, ratelimit_counts_minute,
                           ratelimit_counts_hour, ratelimit_counts_day, ratelimit_counts_month`);
});

function open(): PostgresAnalytics {
  metrics = new Registry();
  const log = pino({ level: "info" }, { write: (line: string) => void logs.push(line) });
  return new PostgresAnalytics({ db, nowMs: () => NOW_MS, log, metrics });
}

const aVerification = (given: Partial<VerificationEvent> = {}): VerificationEvent => ({
  type: "verification",
  id: `ev_${ids++}`,
  requestId: "req_1",
  timeMs: NOW_MS,
  workspaceId: "ws_a",
  keySpaceId: "ks_1",
  apiId: "api_1",
  keyId: "key_1",
  outcome: "VALID",
  tags: [],
  region: "",
  source: "sidecar",
  spentCredits: 1,
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

async function ingest(events: readonly UsageEvent[]): Promise<void> {
  for (const workspaceId of new Set(events.map((event) => event.workspaceId))) {
    const lines = events.filter((event) => event.workspaceId === workspaceId).map((event) => JSON.stringify(event));
    await store.ingest(new EventLines(workspaceId, lines.join("\n")), NOW_MS);
  }
}

const rollUp = async () => {
  while (await store.rollUp());
};

async function rows(text: string): Promise<unknown[]> {
  return (await db.query({ text, rowMode: "array" })).rows;
}

test("events are counted per minute, hour, day and month, also where an hour begins a month", async () => {
  await ingest([
    aVerification({ spentCredits: 3 }),
    aVerification({ timeMs: NOW_MS + 5_000, spentCredits: 4 }),
    aVerification({ timeMs: NOW_MS - HOUR_MS, outcome: "RATE_LIMITED", spentCredits: 0 }),
  ]);
  await rollUp();
  const of = (bucket: string) =>
    rows(`select time::text, outcome, count, spent_credits from verification_counts_${bucket} order by time, outcome`);
  expect(await of("minute")).toEqual([
    ["2042-06-30 23:30:00", "RATE_LIMITED", 1, 0],
    ["2042-07-01 00:30:00", "VALID", 2, 7],
  ]);
  expect(await of("hour")).toEqual([
    ["2042-06-30 23:00:00", "RATE_LIMITED", 1, 0],
    ["2042-07-01 00:00:00", "VALID", 2, 7],
  ]);
  expect(await of("day")).toEqual([
    ["2042-06-30", "RATE_LIMITED", 1, 0],
    ["2042-07-01", "VALID", 2, 7],
  ]);
  expect(await of("month")).toEqual([
    ["2042-06-01", "RATE_LIMITED", 1, 0],
    ["2042-07-01", "VALID", 2, 7],
  ]);
  expect(
    await rows("select time::text, key_space_id, outcome, count from verification_totals_hour order by 1"),
  ).toEqual([
    ["2042-06-30 23:00:00", "ks_1", "RATE_LIMITED", 1],
    ["2042-07-01 00:00:00", "ks_1", "VALID", 2],
  ]);
});

test("what differs in any column is counted apart, and tags are compared without their order", async () => {
  const different: Partial<VerificationEvent>[] = [
    {},
    { keySpaceId: "ks_2" },
    { keyId: "key_2" },
    { identityId: "id_1" },
    { externalId: "u" },
    { outcome: "EXPIRED" },
    { source: "api" },
    { appId: "pol_1" },
    { tags: ["a"] },
    { tags: ["a", "a"] },
    { tags: ["a", "B"] },
    { tags: ["a,B"] },
    { tags: [""] },
    // These differ in where one value ends and the next begins.
    { identityId: "x", externalId: "" },
    { identityId: "", externalId: "x" },
    { workspaceId: "ws_b" },
  ];
  await ingest([...different.map(aVerification), ...different.map(aVerification), aVerification({ tags: ["B", "a"] })]);
  await rollUp();
  for (const bucket of ["minute", "hour", "day", "month"]) {
    const counted = await rows(`select count, tags from verification_counts_${bucket} order by count desc`);
    expect(counted).toHaveLength(different.length);
    expect(counted[0]).toEqual([3, ["B", "a"]]);
    expect(counted.slice(1).every((row) => (row as [number])[0] === 2)).toBe(true);
  }
});

test("limits: what passed, all of them, and their tokens", async () => {
  const late = { timeMs: NOW_MS - 24 * HOUR_MS + 1 };
  await ingest([
    aRatelimit({ cost: 5 }),
    aRatelimit({ cost: 7, passed: false }),
    aRatelimit({ cost: 0, timeMs: NOW_MS - HOUR_MS }),
    aRatelimit({ identifier: "other", ...late }),
    aRatelimit({ namespaceId: "rlns_2", ...late }),
  ]);
  await rollUp();
  const of = (bucket: string) =>
    rows(
      `select time::text, namespace_id, identifier, passed, total, passed_tokens, total_tokens
         from ratelimit_counts_${bucket} order by 1, 2, 3`,
    );
  expect(await of("hour")).toEqual([
    ["2042-06-30 00:00:00", "rlns_1", "other", 1, 1, 1, 1],
    ["2042-06-30 00:00:00", "rlns_2", "user", 1, 1, 1, 1],
    ["2042-06-30 23:00:00", "rlns_1", "user", 1, 1, 0, 0],
    ["2042-07-01 00:00:00", "rlns_1", "user", 1, 2, 5, 12],
  ]);
  expect(await of("month")).toEqual([
    ["2042-06-01", "rlns_1", "other", 1, 1, 1, 1],
    ["2042-06-01", "rlns_1", "user", 1, 1, 0, 0],
    ["2042-06-01", "rlns_2", "user", 1, 1, 1, 1],
    ["2042-07-01", "rlns_1", "user", 1, 2, 5, 12],
  ]);
});

test("sums that are too large stay at the largest number, and stop neither these nor others", async () => {
  const huge = () => aVerification({ spentCredits: COUNT_MAX });
  const hugeLimit = () => aRatelimit({ cost: COUNT_MAX });
  for (let i = 0; i < 3; i++) {
    await ingest([...Array.from({ length: 1500 }, huge), ...Array.from({ length: 1500 }, hugeLimit)]);
    await rollUp();
  }
  expect(await rows("select count, spent_credits from verification_counts_month")).toEqual([[4500, COUNT_MAX]]);
  expect(await rows("select total, total_tokens from ratelimit_counts_month")).toEqual([[4500, COUNT_MAX]]);
});
