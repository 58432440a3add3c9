import fc from "fast-check";
import type { Pool } from "pg";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { createPool } from "../../postgres/pool.ts";
import { type Break, type BreakingLine, openBreakingLine } from "../../test/harness/breaking-line.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { acceptedTimes } from "../accepted-events.ts";
import { BUCKETS, type Bucket } from "../tables.ts";
import { PostgresAnalytics } from "./store.ts";

/*
 * Delivers a stream of events in batches: shuffled, some several times, by several concurrent ingesters whose connections break at any
 * message during storing and roll-up. At the end, each table must equal a direct count of the distinct events.
 */

/** Shortly after midnight on the first of a month, so that accepted late events fall in the previous month. */
const NOW_MS = Date.UTC(2042, 2, 1, 0, 20, 30);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const INGESTERS = 3;
const TABLES = [
  "verification_events",
  "ratelimit_events",
  "rollup_queue",
  "verification_totals_hour",
  "verification_key_totals_day",
  ...BUCKETS.flatMap((bucket) => [`verification_counts_${bucket}`, `ratelimit_counts_${bucket}`]),
];

let database: TestDatabase;
let db: Pool;
const lines: BreakingLine[] = [];
const pools: Pool[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url, { connectionsMax: 4 });
  await storeOn(db).maintain(NOW_MS);
  for (let i = 0; i < INGESTERS; i++) {
    const line = await openBreakingLine(database.url);
    lines.push(line);
    pools.push(createPool(line.url, { connectionsMax: 2 }));
  }
});
afterAll(async () => {
  await Promise.all([...pools, db].map((pool) => pool.end()));
  await Promise.all(lines.map((line) => line.close()));
  await database.drop();
});

const storeOn = (pool: Pool, copies = false) =>
  new PostgresAnalytics({
    db: pool,
    nowMs: () => NOW_MS,
    log: pino({ level: "silent" }),
    metrics: new Registry(),
    copies,
  });

/** Mostly in the accepted range, often at the edge of a minute, a day or a month; some too late or in the future. */
const timeMs = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: NOW_MS - DAY_MS + 1, max: NOW_MS + HOUR_MS - 1 }) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      NOW_MS,
      NOW_MS - 20_000,
      Date.UTC(2042, 2, 1),
      Date.UTC(2042, 2, 1) - 1,
      NOW_MS - DAY_MS + 1,
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(NOW_MS - DAY_MS, NOW_MS - 40 * DAY_MS, NOW_MS + HOUR_MS, 9e15) },
);
const workspaceId = fc.constantFrom("ws_a", "ws_b", "ws_c");
const text = fc.constantFrom("", "a", "b", "ü", "a\u0000b", "'\\");

const verification = fc.record({
  type: fc.constant("verification" as const),
  requestId: fc.constant("req_1"),
  timeMs,
  workspaceId,
  keySpaceId: fc.constantFrom("ks_1", "ks_2"),
  apiId: fc.constant("api_1"),
  keyId: fc.constantFrom("key_1", "key_2", "key_3"),
  identityId: fc.constantFrom(undefined, "id_1"),
  externalId: fc.option(text, { nil: undefined }),
  outcome: fc.constantFrom("VALID", "RATE_LIMITED"),
  tags: fc.array(text, { maxLength: 3 }),
  region: fc.constantFrom("eu", ""),
  source: fc.constantFrom("api" as const, "sidecar" as const),
  appId: fc.constantFrom(undefined, "pol_1"),
  spentCredits: fc.nat({ max: 5 }),
  latencyMs: fc.constant(0.5),
});
const ratelimit = fc.record({
  type: fc.constant("ratelimit" as const),
  requestId: fc.constant("req_1"),
  timeMs,
  workspaceId,
  namespaceId: fc.constantFrom("rlns_1", "rlns_2"),
  identifier: text,
  passed: fc.boolean(),
  latencyMs: fc.constant(1),
  limit: fc.constant(10),
  remaining: fc.constant(1),
  resetMs: fc.constant(NOW_MS),
  cost: fc.nat({ max: 5 }),
});
const events = fc
  .array(fc.oneof(verification, ratelimit), { minLength: 1, maxLength: 80 })
  // Ids are in random order.
  .map((all) => all.map((event, n): UsageEvent => ({ ...event, id: `ev_${(n * 7919) % 1009}` })));

const aBreak: fc.Arbitrary<Break | undefined> = fc.option(
  fc.record({ message: fc.integer({ min: 1, max: 12 }), when: fc.constantFrom("before" as const, "after" as const) }),
  { nil: undefined, freq: 2 },
);
/** Step of an ingester: delivers a batch or rolls up; its connection breaks at the given message. */
const aStep = fc.record({
  does: fc.oneof({ weight: 3, arbitrary: fc.nat() }, { weight: 2, arbitrary: fc.constant("roll up" as const) }),
  at: aBreak,
});
const runs = fc.record({
  events,
  /** Batch of each event; all are of one workspace, and some events are in several batches. */
  batchOf: fc.infiniteStream(fc.nat({ max: 5 })),
  doubled: fc.infiniteStream(fc.nat({ max: 9 })),
  strange: fc.constantFrom(undefined, "no JSON", "{}", '"text"'),
  steps: fc.array(fc.array(aStep, { minLength: 1, maxLength: 8 }), { minLength: INGESTERS, maxLength: INGESTERS }),
});

interface Batch {
  readonly workspaceId: string;
  readonly lines: string;
}

function toPortions(run: typeof runs extends fc.Arbitrary<infer T> ? T : never): Batch[] {
  const portions = new Map<string, string[]>();
  const put = (event: UsageEvent, batch: number) => {
    const place = `${event.workspaceId} ${batch}`;
    portions.set(place, [...(portions.get(place) ?? []), JSON.stringify(event)]);
  };
  for (const event of run.events) {
    put(event, run.batchOf.next().value);
    if (run.doubled.next().value === 0) put(event, run.batchOf.next().value);
  }
  return [...portions].map(([place, written]) => ({
    workspaceId: place.split(" ")[0] ?? "",
    lines: [...written, ...(run.strange === undefined ? [] : [run.strange])].join("\n"),
  }));
}

const deliver = (store: PostgresAnalytics, { workspaceId: id, lines: written }: Batch) =>
  store.ingest(new EventLines(id, written), NOW_MS);

/** Expected rows of each table as sorted text. */
const counted = new Map<string, (of: readonly UsageEvent[]) => string[]>(
  BUCKETS.flatMap((bucket) => [
    [
      `verification_counts_${bucket}`,
      (of) => sums(of.filter(isVerification), (event) => dimsOf(event, bucket), VERIFIED),
    ],
    [`ratelimit_counts_${bucket}`, (of) => sums(of.filter(isRatelimit), (event) => limitOf(event, bucket), LIMITED)],
  ]),
);
counted.set("verification_totals_hour", (of) =>
  sums(
    of.filter(isVerification),
    (event) => [event.workspaceId, startOf(event.timeMs, "hour"), event.keySpaceId, event.outcome],
    VERIFIED,
  ),
);
counted.set("verification_key_totals_day", (of) =>
  sums(
    of.filter(isVerification),
    (event) => [event.workspaceId, startOf(event.timeMs, "day"), event.keySpaceId, event.keyId],
    VERIFIED,
  ),
);

const isVerification = (event: UsageEvent): event is VerificationEvent => event.type === "verification";
const isRatelimit = (event: UsageEvent): event is RatelimitEvent => event.type === "ratelimit";
const VERIFIED = (event: VerificationEvent) => [1, event.spentCredits];
const LIMITED = (event: RatelimitEvent) => [event.passed ? 1 : 0, 1, event.passed ? event.cost : 0, event.cost];

function dimsOf(event: VerificationEvent, bucket: Bucket): unknown[] {
  const { keySpaceId, keyId, identityId = "", externalId = "", outcome, source, appId = "", tags } = event;
  const dims = [keySpaceId, keyId, identityId, clean(externalId), outcome, source, appId];
  return [event.workspaceId, startOf(event.timeMs, bucket), ...dims, tags.map(clean).sort(byBytes)];
}

const limitOf = (event: RatelimitEvent, bucket: Bucket): unknown[] => [
  event.workspaceId,
  startOf(event.timeMs, bucket),
  event.namespaceId,
  clean(event.identifier),
];

const clean = (given: string): string => given.replaceAll("\u0000", "\ufffd");
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

function startOf(ms: number, bucket: Bucket): string {
  const iso = new Date(ms).toISOString();
  const kept = { minute: 16, hour: 13, day: 10, month: 7 }[bucket];
  return iso.slice(0, kept) + "0000-01-01T00:00:00".slice(kept);
}

function sums<E>(of: readonly E[], dims: (event: E) => unknown[], measures: (event: E) => number[]): string[] {
  const totals = new Map<string, number[]>();
  for (const event of of) {
    const place = JSON.stringify(dims(event));
    const before = totals.get(place);
    totals.set(
      place,
      measures(event).map((measure, at) => measure + (before?.[at] ?? 0)),
    );
  }
  return [...totals].map(([place, total]) => `${place} ${total.join(" ")}`).sort();
}

const TIME = `to_char(time, 'YYYY-MM-DD"T"HH24:MI:SS') as time`;
const DIMS: Readonly<Record<string, readonly string[]>> = {
  ratelimit_counts: ["namespace_id", "identifier"],
  verification_counts: ["key_space_id", "key_id", "identity_id", "external_id", "outcome", "source", "app_id", "tags"],
  verification_totals: ["key_space_id", "outcome"],
  verification_key_totals: ["key_space_id", "key_id"],
};

async function found(table: string): Promise<string[]> {
  const dims = DIMS[table.replace(/_[a-z]+$/, "")] ?? [];
  const measures = table.startsWith("ratelimit")
    ? ["passed", "total", "passed_tokens", "total_tokens"]
    : ["count", "spent_credits"];
  const { rows } = await db.query<Record<string, unknown>>(
    `select workspace_id, ${TIME}, ${[...dims, ...measures].join(", ")} from ${table}`,
  );
  return rows
    .map((row) => {
      const place = JSON.stringify(["workspace_id", "time", ...dims].map((column) => row[column]));
      return `${place} ${measures.map((column) => row[column]).join(" ")}`;
    })
    .sort();
}

test("events are counted exactly once despite duplicates, delays, crashes and several ingesters", async () => {
  await fc.assert(
    fc.asyncProperty(runs, async (run) => {
      for (const table of TABLES) await db.query(`delete from ${table}`);
      const portions = toPortions(run);
      const isDone = new Set<number>();
      const failures: unknown[] = [];
      await Promise.all(
        run.steps.map(async (steps, ingester) => {
          const [line, pool] = [lines[ingester], pools[ingester]];
          if (line === undefined || pool === undefined) throw new Error("no such ingester");
          // Two of the three ingesters use COPY.
          const store = storeOn(pool, ingester > 0);
          for (const { does, at } of steps) {
            line.arm(at);
            try {
              if (does === "roll up") await store.rollUp();
              else {
                await deliver(store, portions[does % portions.length] as Batch);
                isDone.add(does % portions.length);
              }
            } catch (error) {
              if (at === undefined) failures.push(error);
            }
          }
          line.arm(undefined);
        }),
      );
      expect(failures).toEqual([]);
      // The stream redelivers unacknowledged batches.
      const store = storeOn(db);
      for (const [n, batch] of portions.entries()) if (!isDone.has(n)) await deliver(store, batch);
      // Postgres may hold the lock of a broken connection for a moment, and nothing is rolled up until then.
      await waitFor("all batches to be rolled up", async () => {
        while (await store.rollUp());
        return (await db.query("select from rollup_queue limit 1")).rowCount === 0;
      });

      const { afterMs, beforeMs } = acceptedTimes(NOW_MS);
      const accepted = run.events.filter((event) => event.timeMs > afterMs && event.timeMs < beforeMs);
      for (const [table, count] of counted) {
        expect({ table, rows: await found(table) }).toEqual({ table, rows: count(accepted) });
      }
    }),
    { numRuns: 30, seed: 20 },
  );
}, 240_000);
