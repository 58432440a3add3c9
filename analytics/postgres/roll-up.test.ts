import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";
import { aRatelimitEvent, aVerificationEvent } from "../../test/builders/usage-event.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { COUNT_MAX } from "./event-lines.ts";
import { waitAfter } from "./roll-up.ts";
import { PostgresAnalytics } from "./store.ts";

const NOW_MS = Date.UTC(2042, 6, 1, 0, 30, 10);
const HOUR_MS = 3_600_000;

let database: TestDatabase;
let db: Pool;
let store: PostgresAnalytics;
const logs: string[] = [];
let metrics: Registry;

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
                           verification_counts_month, verification_totals_hour, verification_key_totals_day, ratelimit_counts_minute,
                           ratelimit_counts_hour, ratelimit_counts_day, ratelimit_counts_month`);
});

function open(given: { groupsMax?: number } = {}): PostgresAnalytics {
  metrics = new Registry();
  const log = pino({ level: "info" }, { write: (line: string) => void logs.push(line) });
  return new PostgresAnalytics({ db, nowMs: () => NOW_MS, log, metrics, ...given });
}

const aVerification = (given: Partial<VerificationEvent> = {}): VerificationEvent =>
  aVerificationEvent({ timeMs: NOW_MS, ...given });
const aRatelimit = (given: Partial<RatelimitEvent> = {}): RatelimitEvent =>
  aRatelimitEvent({ timeMs: NOW_MS, ...given });

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

test("roll-up counts events per minute, hour, day and month, including month boundaries", async () => {
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
  expect(
    await rows(
      "select time::text, key_space_id, key_id, count, spent_credits from verification_key_totals_day order by 1",
    ),
  ).toEqual([
    ["2042-06-30", "ks_1", "key_1", 1, 0],
    ["2042-07-01", "ks_1", "key_1", 2, 7],
  ]);
});

test("roll-up separates rows that differ in any column and ignores tag order", async () => {
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
    // These values are equal when concatenated.
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

test("roll-up counts allowed rate limit requests, all requests and their tokens", async () => {
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

test("roll-up caps overflowing sums without affecting other rows", async () => {
  const huge = () => aVerification({ spentCredits: COUNT_MAX });
  const hugeLimit = () => aRatelimit({ cost: COUNT_MAX });
  for (let i = 0; i < 3; i++) {
    await ingest([...Array.from({ length: 1500 }, huge), ...Array.from({ length: 1500 }, hugeLimit)]);
    await rollUp();
  }
  expect(await rows("select count, spent_credits from verification_counts_month")).toEqual([[4500, COUNT_MAX]]);
  expect(await rows("select total, total_tokens from ratelimit_counts_month")).toEqual([[4500, COUNT_MAX]]);
});

test("roll-up supports tags of maximum length and any text", async () => {
  const tags = [...Array.from({ length: 20 }, (_, n) => `${n}${"ü".repeat(500)}`), "", "😀", "'\\\"\n"];
  await ingest([aVerification({ tags, externalId: "e".repeat(4096) }), aRatelimit({ identifier: "i".repeat(4096) })]);
  await rollUp();
  const [row] = (await rows("select tags, external_id from verification_counts_day")) as [string[], string][];
  const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  expect(row).toEqual([tags.toSorted(byBytes), "e".repeat(4096)]);
  expect(await rows("select length(identifier) from ratelimit_counts_month")).toEqual([[4096]]);
});

const total = async (workspaceId: string): Promise<number> => {
  const text = "select coalesce(sum(count), 0) as total from verification_counts_day where workspace_id = $1";
  return Number((await db.query<{ total: string }>(text, [workspaceId])).rows[0]?.total);
};

test("concurrent roll-ups neither fail nor count twice", async () => {
  const stores = Array.from({ length: 4 }, () => open());
  const keys = Array.from({ length: 300 }, (_, n) => `key_${(n * 7919) % 1009}`);
  for (let round = 0; round < 5; round++) {
    const portions = [keys, keys.toReversed()].map((ids) => ingest(ids.map((keyId) => aVerification({ keyId }))));
    await Promise.all([...portions, ...stores.map((each) => each.rollUp())]);
  }
  await rollUp();
  expect(await total("ws_a")).toBe(5 * 2 * keys.length);
  expect(logs).toEqual([]);
});

test("roll-up alternates between workspaces during a flood of events", async () => {
  for (let batch = 0; batch < 20; batch++) {
    await ingest(Array.from({ length: 200 }, (_, n) => aVerification({ keyId: `key_${batch}_${n}` })));
  }
  await ingest([aVerification({ workspaceId: "ws_b" })]);
  store = open({ groupsMax: 1_000 });
  expect(await store.rollUp()).toBe(true);
  expect([await total("ws_a"), await total("ws_b")]).toEqual([1_000, 1]);
  await rollUp();
  expect([await total("ws_a"), await total("ws_b")]).toEqual([4_000, 1]);
});

test("failing roll-up of one workspace is logged, counted and retried without delaying other workspaces", async () => {
  // A trigger simulates a rejection by the database.
  await db.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`);
  await db.query(`create trigger refuse before insert on verification_counts_month
                    for each row when (new.workspace_id = 'ws_b') execute function refuse()`);
  try {
    await ingest([aVerification({ workspaceId: "ws_b" }), aVerification(), aVerification({ workspaceId: "ws_c" })]);
    await rollUp();
    expect([await total("ws_a"), await total("ws_b"), await total("ws_c")]).toEqual([1, 0, 1]);
    await ingest([aVerification()]);
    await rollUp();
    expect(await total("ws_a")).toBe(2);
    expect(logs).toHaveLength(1);
    expect(logs[0]).toContain('"workspaceId":"ws_b"');
    expect(logs[0]).toContain("refused");
    expect(await metrics.metrics()).toContain("postern_rollup_failures_total 1");
  } finally {
    await db.query("drop trigger refuse on verification_counts_month; drop function refuse");
  }
  await waitFor("the retry", async () => {
    await store.rollUp();
    return (await total("ws_b")) === 1;
  });
});

test("locked roll-up rows delay only their own workspace for a limited time", async () => {
  await ingest([aVerification({ workspaceId: "ws_b" })]);
  await rollUp();
  const holder = await db.connect();
  try {
    await holder.query("begin");
    await holder.query("select from verification_counts_hour where workspace_id = 'ws_b' for update");
    await ingest([aVerification({ workspaceId: "ws_b" }), aVerification()]);
    const startedMs = performance.now();
    await rollUp();
    expect(performance.now() - startedMs).toBeLessThan(15_000);
    expect([await total("ws_a"), await total("ws_b")]).toEqual([1, 1]);
  } finally {
    await holder.query("rollback");
    holder.release();
  }
  await waitFor("the retry", async () => {
    await store.rollUp();
    return (await total("ws_b")) === 2;
  });
}, 60_000);

test("roll-up of all workspaces fails when Postgres is unavailable", async () => {
  await ingest([aVerification()]);
  const away = createPool("postgres://postgres@127.0.0.1:1/none", { connectMsMax: 500 });
  const log = pino({ level: "info" }, { write: (line: string) => void logs.push(line) });
  const onUnavailable = new PostgresAnalytics({ db: away, nowMs: () => NOW_MS, log, metrics: new Registry() });
  await expect(onUnavailable.rollUp()).rejects.toThrow();
  await away.end();
  expect(logs).toEqual([]);
});

test("roll-up with the option `patient` waits a second and then processes all recent events", async () => {
  await ingest([aVerification()]);
  expect(await store.rollUp({ patient: true })).toBe(false);
  expect(await total("ws_a")).toBe(0);
  expect(await metrics.metrics()).toContain("postern_rollup_waiting_events 1");
  await db.query("update rollup_queue set queued_at = queued_at - interval '1 second'");
  await ingest([aVerification()]);
  await store.rollUp({ patient: true });
  expect(await total("ws_a")).toBe(2);
  await store.rollUp({ patient: true });
  expect(await metrics.metrics()).toContain("postern_rollup_lag_seconds 0\n");
});

test("roll-up discards events whose partitions have been dropped", async () => {
  await ingest([aVerification(), aRatelimit()]);
  const laterMs = NOW_MS + 200 * 24 * HOUR_MS;
  const log = pino({ level: "info" }, { write: (line: string) => void logs.push(line) });
  const later = new PostgresAnalytics({ db, nowMs: () => laterMs, log, metrics: new Registry() });
  await later.maintain(laterMs);
  await later.rollUp();
  expect(logs).toEqual([]);
  expect(await rows("select count(*) from rollup_queue")).toEqual([[0]]);
  expect(await total("ws_a")).toBe(0);
  expect(await rows("select total from ratelimit_counts_month")).toEqual([[1]]);
  await later.maintain(NOW_MS);
}, 60_000);

test.each([
  { ranMs: 0, waitMs: 1_000 },
  { ranMs: 300, waitMs: 1_000 },
  { ranMs: 500, waitMs: 1_500 },
  { ranMs: 5_000, waitMs: 15_000 },
  { ranMs: 60_000, waitMs: 30_000 },
])("after a roll-up of $ranMs ms the next one waits $waitMs ms", ({ ranMs, waitMs }) =>
  expect(waitAfter(ranMs)).toBe(waitMs),
);
