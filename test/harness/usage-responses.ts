import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { parse } from "../../analytics/dialect/parse.ts";
import { emitForPostgres } from "../../analytics/dialect/postgres/emit.ts";
import { resolveQuery } from "../../analytics/dialect/resolve/resolve.ts";
import { partitionAt } from "../../analytics/postgres/partition-plan.ts";
import { createPartition } from "../../analytics/postgres/partitions.ts";
import { openPostgresReader } from "../../analytics/postgres/run.ts";
import { STORED_TABLES } from "../../analytics/postgres/tables.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase } from "./postgres.ts";

/** Value of `now()`: noon of a Sunday. */
export const NOW_MS = Date.UTC(2042, 5, 15, 12);

const LIMITS = { rowsMax: 1_000, timeoutMs: 10_000, memoryBytesMax: 1_000_000_000, answerBytesMax: 4 * 1024 * 1024 };

interface Counted {
  readonly time: string;
  readonly key: string;
  readonly outcome: string;
  readonly count: number;
  readonly credits?: number;
  readonly tags?: readonly string[];
  readonly externalId?: string;
  readonly workspaceId?: string;
}

/** Days with a gap, and a row of another workspace, which must never be visible. */
const DAYS: readonly Counted[] = [
  { time: "2042-06-01", key: "key_a", outcome: "VALID", count: 1, credits: 3, tags: ["a", "b"], externalId: "user_B" },
  { time: "2042-06-02", key: "key_b", outcome: "VALID", count: 2, externalId: "ünal" },
  { time: "2042-06-05", key: "key_a", outcome: "RATE_LIMITED", count: 4, tags: ["b"], externalId: "user_a" },
  { time: "2042-06-05", key: "key_c", outcome: "VALID", count: 1000, workspaceId: "ws_b" },
];

const HOURS: readonly Counted[] = [
  { time: "2042-06-01 00:00:00", key: "key_a", outcome: "VALID", count: 1 },
  { time: "2042-06-02 03:00:00", key: "key_b", outcome: "VALID", count: 2 },
  { time: "2042-06-15 10:00:00", key: "key_a", outcome: "EXPIRED", count: 4 },
];

/** Rate limit events at 10:00:00.123 on three days. */
const LIMITED = [
  { day: "2042-06-01", identifier: "alice", passed: true, latency: 1.5, tokens: 3 },
  { day: "2042-06-02", identifier: "Bob", passed: false, latency: 2.5, tokens: 4 },
  { day: "2042-06-05", identifier: "é", passed: true, latency: 0.5, tokens: 5 },
] as const;

export interface UsageAnswers {
  /** Runs a caller's query on Postgres as the analytics store does and returns the rows. */
  rows(text: string): Promise<Record<string, unknown>[]>;
  /** Returns the values of the rows in column order. */
  values(text: string): Promise<unknown[][]>;
  close(): Promise<void>;
}

/** Opens a database with a few usage rows that is queried through the dialect. */
export async function openUsageAnswers(): Promise<UsageAnswers> {
  const database = await createTestDatabase();
  const db = createPool(database.url);
  for (const table of STORED_TABLES) {
    for (const date of ["2042-05-31", "2042-06-01", "2042-06-02", "2042-06-05", "2042-06-15"]) {
      await createPartition(db, partitionAt(table, Date.parse(date)));
    }
  }
  await insertRows(db);
  const reader = openPostgresReader({ databaseUrl: database.url, log: console });
  const visibleFrom = { raw: 0, minute: 0, hour: 0, day: 0, month: 0 };
  const scope = { workspaceId: "ws_a", within: undefined, nowMs: NOW_MS, visibleFrom };
  const emitted = (text: string) =>
    emitForPostgres(resolveQuery({ query: parse(text).query, text }), {
      nowMs: NOW_MS,
      rowsMax: LIMITS.rowsMax,
      workspaceId: "ws_a",
    });
  const rows = async (text: string) =>
    JSON.parse((await reader.query(emitted(text), { scope, limits: LIMITS })).rowsJson) as Record<string, unknown>[];
  return {
    rows,
    values: async (text) => (await rows(text)).map((row) => Object.values(row)),
    close: async () => {
      await reader.close();
      await db.end();
      await database.drop();
    },
  };
}

async function insertRows(db: Pool): Promise<void> {
  for (const row of DAYS) await insertCounts(db, "day", row);
  for (const row of HOURS) await insertCounts(db, "hour", row);
  for (const { day, identifier, passed, latency, tokens } of LIMITED) {
    await db.query(
      `insert into ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed, latency_ms, max_count, remaining, reset_at, cost)
       values ($1::date, $2, $2, $3, 'ws_a', 'rl_1', $2, $4, $5, 10, -7, 0, $6)`,
      [day, identifier, Date.parse(`${day}T10:00:00.123Z`), passed, latency, tokens],
    );
  }
}

async function insertCounts(db: Pool, bucket: "day" | "hour", row: Counted): Promise<void> {
  const { time, key, outcome, count, credits = 0, tags = [], externalId = "", workspaceId = "ws_a" } = row;
  const dims = createHash("sha256").update(JSON.stringify(row)).digest().subarray(0, 16);
  await db.query(
    `insert into verification_counts_${bucket} (time, spent_credits, count, workspace_id, key_space_id, key_id, identity_id, external_id, outcome, source, app_id, tags, dims)
     values ($1, $2, $3, $4, 'ks_1', $5, '', $6, $7, 'api', '', $8, $9)`,
    [time, credits, count, workspaceId, key, externalId, outcome, tags, dims],
  );
  if (bucket === "hour") return;
  await db.query(
    `insert into verification_key_totals_day (time, spent_credits, count, workspace_id, key_space_id, key_id)
     values ($1, $2, $3, $4, 'ks_1', $5)
     on conflict (workspace_id, time, key_id, key_space_id)
        do update set spent_credits = verification_key_totals_day.spent_credits + excluded.spent_credits,
                      count = verification_key_totals_day.count + excluded.count`,
    [time, credits, count, workspaceId, key],
  );
}
