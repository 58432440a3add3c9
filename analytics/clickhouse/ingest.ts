import type { Pool } from "pg";
import type { TakenEvents, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import { acceptedTimes } from "../accepted-events.ts";
import type { Ingested } from "../contract.ts";
import { raiseLastUsed } from "../last-used.ts";
import { lockIngestion } from "../locks.ts";
import { retentionOf } from "../retention.ts";
import { answered, type ClickHouseClient } from "./client.ts";
import { keptDays, type RowsOf, ratelimitRow, sortBatch, verificationRow } from "./rows.ts";
import { ARRIVING } from "./schema.ts";
import type { ClickhouseWatch } from "./watch.ts";

/*
 * Stores one workspace's batch of events, each event exactly once:
 *
 * - A batch may be delivered again after a lost response or a crashed process. The batch id is the deduplication token of the insert.
 *   Each table remembers the tokens of its inserts, so a retry completes an insert that reached only some tables.
 * - A writer may send an event twice, in two batches. The view that forwards events (schema.ts) drops the second copy. Two such batches
 *   must not be inserted concurrently, so a Postgres lock lets one process at a time store events of a workspace.
 * - A stalled process loses the lock. When it resumes, its insert is deduplicated by token or filtered by the view.
 */

const LOCK_MS_MAX = 2_000;
/** Idle time after which the holder of a lock loses it. It must exceed the maximum duration of an insert. */
const IDLE_MS_MAX = 60_000;
const INSERT_SECONDS_MAX = 30;
const MINUTE_MS = 60_000;

export interface IngestDeps {
  readonly client: ClickHouseClient;
  readonly watch: ClickhouseWatch;
  readonly db: Pool;
  readonly idleMsMax?: number | undefined;
}

/** Stores a batch. Throws `AnalyticsUnavailable`, or the error of ClickHouse or Postgres if only this workspace is affected. */
export async function ingestBatch(
  { client, watch, db, idleMsMax = IDLE_MS_MAX }: IngestDeps,
  batch: TakenEvents,
  nowMs: number,
): Promise<Ingested> {
  const { workspaceId, batchId } = batch;
  const { verifications, ratelimits, late, omitted } = sortBatch(batch, acceptedTimes(nowMs));
  if (verifications.length + ratelimits.length === 0) return { stored: 0, late, omitted };
  const retention = await retentionOf(db, workspaceId);
  const ofVerifications: RowsOf = { batchId, keptDays: keptDays(retention, "verifications") };
  const ofRatelimits: RowsOf = { batchId, keptDays: keptDays(retention, "ratelimits") };
  const stored = await withoutOutbox(db, async (tx) => {
    await lockIngestion(tx, { workspaceId, lockMsMax: LOCK_MS_MAX, idleMsMax });
    const fresh = await watch.insert(verifications.length + ratelimits.length, async () => {
      const unknown =
        (await countNew(client, "verification", verifications)) + (await countNew(client, "ratelimit", ratelimits));
      await insert(
        client,
        "verification",
        batchId,
        verifications.map((event) => verificationRow(event, ofVerifications)),
      );
      await insert(
        client,
        "ratelimit",
        batchId,
        ratelimits.map((event) => ratelimitRow(event, ofRatelimits)),
      );
      return unknown;
    });
    if (verifications.length > 0) await raiseLastUsed(tx, lastUses(verifications));
    return fresh;
  });
  return { stored, late, omitted };
}

type Kind = keyof typeof ARRIVING;

/**
 * Returns how many of these events are missing from the table. Selecting by the events' timestamps lets the query use the primary index.
 */
async function countNew(client: ClickHouseClient, kind: Kind, events: readonly UsageEvent[]): Promise<number> {
  if (events.length === 0) return 0;
  const response = await answered(
    client.query({
      query: `select distinct e.id from ${ARRIVING[kind].raw} as e
               where e.workspace_id = {workspaceId:String} and e.time in {times:Array(Int64)}`,
      query_params: { workspaceId: events[0]?.workspaceId, times: [...new Set(events.map(({ timeMs }) => timeMs))] },
      format: "JSONCompactEachRow",
      clickhouse_settings: { max_execution_time: INSERT_SECONDS_MAX },
      use_multipart_params: true,
    }),
  );
  const known = new Set((await answered(response.json<[string]>())).map(([id]) => id));
  return events.filter(({ id }) => !known.has(id)).length;
}

async function insert(client: ClickHouseClient, kind: Kind, token: string, rows: readonly unknown[]): Promise<void> {
  if (rows.length === 0) return;
  const { table, columns } = ARRIVING[kind];
  await answered(
    client.insert({
      table,
      columns: columns as [string, ...string[]],
      values: rows,
      format: "JSONCompactEachRow",
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: token,
        deduplicate_blocks_in_dependent_materialized_views: 1,
        materialized_views_ignore_errors: 0,
        // Disables server-side batching, which would acknowledge an insert before its rows are in the tables.
        async_insert: 0,
        wait_end_of_query: 1,
        // Makes each attempt write a single block with the same groups in the same order. Required because a deduplication token identifies
        // a complete insert.
        max_insert_threads: "1",
        input_format_parallel_parsing: 0,
        parallel_view_processing: 0,
        group_by_two_level_threshold: "0",
        group_by_two_level_threshold_bytes: "0",
        // Skips grouping during the insert, because the views have already grouped the rows of the count tables.
        optimize_on_insert: 0,
        max_execution_time: INSERT_SECONDS_MAX,
      },
    }),
  );
}

/** Returns the last use of each key, rounded to the minute, which avoids most updates of a key's row. */
function lastUses(events: readonly VerificationEvent[]) {
  const latest = new Map<string, { workspaceId: string; keyId: string; lastUsedAt: number }>();
  for (const { workspaceId, keyId, timeMs } of events) {
    const lastUsedAt = timeMs - (timeMs % MINUTE_MS);
    if (lastUsedAt > (latest.get(keyId)?.lastUsedAt ?? 0)) latest.set(keyId, { workspaceId, keyId, lastUsedAt });
  }
  return [...latest.values()];
}
