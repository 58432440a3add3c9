import type { Pool } from "pg";
import { type QueryLimits, QueryRefused, type VisibleFrom } from "../../api-server/analytics/contract.ts";
import { type CheckedQuery, readQuery } from "../../api-server/analytics/dialect/check.ts";
import { QueryProblem } from "../../api-server/analytics/dialect/problem.ts";
import { resolveQuery } from "../../api-server/analytics/dialect/resolve/resolve.ts";
import { emitForPostgres } from "../../api-server/analytics/postgres/emit/emit.ts";
import { partitionAt } from "../../api-server/analytics/postgres/partition-plan.ts";
import { createPartition } from "../../api-server/analytics/postgres/partitions.ts";
import { openPostgresReader } from "../../api-server/analytics/postgres/run.ts";
import { STORED_TABLES } from "../../api-server/analytics/postgres/tables.ts";
import { createPool } from "../../api-server/store/pool.ts";
import { createTestDatabase } from "../harness/postgres.ts";

/*
 * A Postgres in which another workspace, and another API of the caller's own, have rows with `theirs` in every text and one large
 * number in every count. An answer that has either of them shows rows that are not the caller's.
 */

const NOW_MS = Date.UTC(2042, 5, 15, 12);
const KEPT_FROM_MS = NOW_MS - 30 * 86_400_000;
const VISIBLE_FROM: VisibleFrom = {
  raw: KEPT_FROM_MS,
  minute: KEPT_FROM_MS,
  hour: KEPT_FROM_MS,
  day: KEPT_FROM_MS,
  month: KEPT_FROM_MS,
};
const LIMITS: QueryLimits = {
  rowsMax: 1_000,
  timeoutMs: 3_000,
  memoryBytesMax: 1_000_000_000,
  answerBytesMax: 4 * 1024 * 1024,
};
const THEIR_NUMBER = 987_654_321;

/** What an answer to the caller never has. */
export const FOREIGN_MARK = new RegExp(`theirs|${THEIR_NUMBER}`);

/** Checks a text as the procedure for verifications does. @throws QueryProblem */
export const checkMarked = (text: string): CheckedQuery =>
  readQuery(text, { of: "verifications", nowMs: NOW_MS, visibleFrom: VISIBLE_FROM });

export interface MarkedStore {
  /**
   * Returns the rows as JSON, or how the query was refused. Throws what would be a 5xx: everything but a problem of the query and a
   * limit of the store.
   */
  ask(text: string, as?: "ours" | "theirs"): Promise<{ rows: string } | { refused: string }>;
  close(): Promise<void>;
}

/** `onFault` is told of each query that Postgres refused for another reason than the query's data: then what was emitted is wrong. */
export async function openMarkedStore({
  onFault = () => undefined,
}: {
  readonly onFault?: (fault: string) => void;
} = {}): Promise<MarkedStore> {
  const database = await createTestDatabase();
  const db = createPool(database.url);
  for (const table of STORED_TABLES) await createPartition(db, partitionAt(table, NOW_MS));
  await addRows(db, { workspaceId: "ws_ours", keySpaceId: "ks_ours", mark: "ours", number: 1 });
  await addRows(db, { workspaceId: "ws_ours", keySpaceId: "ks_theirs", mark: "theirs", number: THEIR_NUMBER });
  await addRows(db, { workspaceId: "ws_theirs", keySpaceId: "ks_theirs", mark: "theirs", number: THEIR_NUMBER });
  const reader = openPostgresReader({
    databaseUrl: database.url,
    log: { warn: (about, message) => onFault(`${message}: ${String((about as { err?: unknown }).err ?? "")}`) },
    waitMsMax: 5_000,
  });
  return {
    async ask(text, as = "ours") {
      try {
        const query = emitForPostgres(resolveQuery(checkMarked(text)), {
          nowMs: NOW_MS,
          rowsMax: LIMITS.rowsMax,
          workspaceId: `ws_${as}`,
        });
        const scope = { workspaceId: `ws_${as}`, within: [`ks_${as}`], nowMs: NOW_MS, visibleFrom: VISIBLE_FROM };
        return { rows: (await reader.query(query, { scope, limits: LIMITS })).rowsJson };
      } catch (error) {
        if (error instanceof QueryProblem) return { refused: `${error.kind}: ${error.detail}` };
        if (error instanceof QueryRefused && error.reason !== "unavailable") {
          return { refused: `${error.reason}: ${error.message}` };
        }
        throw error;
      }
    },
    async close() {
      await reader.close();
      await db.end();
      await database.drop();
    },
  };
}

async function addRows(
  db: Pool,
  { workspaceId, keySpaceId, mark, number }: { workspaceId: string; keySpaceId: string; mark: string; number: number },
): Promise<void> {
  for (let i = 0; i < 10; i += 1) {
    await db.query(
      `insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id, outcome, tags, source, spent_credits)
       values (to_timestamp($2 / 1000.0) at time zone 'UTC', $1, $1, $2, $3, $4, 'api', $5, $5, $6, $5, $7)`,
      [`${workspaceId}_${mark}_${i}`, NOW_MS - i, workspaceId, keySpaceId, mark, [mark], number],
    );
  }
  for (const bucket of ["minute", "hour", "day", "month"]) {
    await db.query(
      `insert into verification_counts_${bucket}
       values (date_trunc($1, to_timestamp($2 / 1000.0) at time zone 'UTC'), $6, $6, $3, $4, '', $5, $5, $5, $5, '', '{}', '')
       on conflict do nothing`,
      [bucket, NOW_MS, workspaceId, keySpaceId, mark, number],
    );
  }
}
