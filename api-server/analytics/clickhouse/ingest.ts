import type { Pool } from "pg";
import type { TakenEvents, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { lockIngestion } from "../../store/analytics-locks.ts";
import { raiseLastUsed } from "../../store/key-usage.ts";
import { withoutOutbox } from "../../store/unmarked-transaction.ts";
import { acceptedTimes } from "../accepted-times.ts";
import type { Ingested } from "../contract.ts";
import { retentionOf } from "../retention-of.ts";
import { answered, type ClickHouseClient } from "./client.ts";
import { keptDays, type RowsOf, ratelimitRow, sortBatch, verificationRow } from "./rows.ts";
import { ARRIVING } from "./schema.ts";
import type { ClickhouseWatch } from "./watch.ts";

/*
 * Stores a portion of one workspace's events, each exactly once:
 *
 * - A portion that is delivered again, because an answer or a process was lost, is recognized: its id is the deduplication token of the
 *   insert. Each table remembers the tokens of what it has stored, so an insert that reached some tables and not others is completed.
 * - An event that a writer sent twice, in two portions, is left out of the second one by the view that passes events on (schema.ts).
 *   Two such portions must not be inserted at the same moment, so a lock in Postgres lets one process at a time store events of a workspace.
 * - A process that stands still loses the lock. When it wakes up, its insert is recognized, or is filtered when it runs.
 */

const LOCK_MS_MAX = 2_000;
/** After which a process counts as standing still: longer than an insert may take. */
const IDLE_MS_MAX = 60_000;
const INSERT_SECONDS_MAX = 30;
const MINUTE_MS = 60_000;

export interface IngestDeps {
  readonly client: ClickHouseClient;
  readonly watch: ClickhouseWatch;
  readonly db: Pool;
  readonly idleMsMax?: number | undefined;
}

/** Throws `AnalyticsUnavailable`, and the error of either store when it refuses something for this workspace alone. */
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

/** How many of these events the table does not have. Events of the same milliseconds are found by the table's index. */
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
        // The server must not gather inserts by itself: it would answer before the tables have them.
        async_insert: 0,
        wait_end_of_query: 1,
        // One block, and the same groups in the same order in every try: a token is that of a whole insert.
        max_insert_threads: "1",
        input_format_parallel_parsing: 0,
        parallel_view_processing: 0,
        group_by_two_level_threshold: "0",
        group_by_two_level_threshold_bytes: "0",
        // The views have grouped the rows of a count already.
        optimize_on_insert: 0,
        max_execution_time: INSERT_SECONDS_MAX,
      },
    }),
  );
}

/** To the minute, which is exact enough and avoids most updates of the row. */
function lastUses(events: readonly VerificationEvent[]) {
  const latest = new Map<string, { workspaceId: string; keyId: string; lastUsedAt: number }>();
  for (const { workspaceId, keyId, timeMs } of events) {
    const lastUsedAt = timeMs - (timeMs % MINUTE_MS);
    if (lastUsedAt > (latest.get(keyId)?.lastUsedAt ?? 0)) latest.set(keyId, { workspaceId, keyId, lastUsedAt });
  }
  return [...latest.values()];
}
