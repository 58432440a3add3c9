import type { Queryable, RemoveBatch } from "../../postgres/queryable.ts";
import { type AnalyticsRetention, daysKept, keptFromMs, longestRetention, retentionOf } from "../retention.ts";
import { STORED_TABLES, type StoredTable } from "./tables.ts";

/*
 * A partition is dropped when it is past the retention of every workspace. Until then, rows of workspaces with a shorter retention are
 * deleted individually.
 */

/**
 * Minimum retention of raw events. Within this time, an event can be delivered again, and would be counted twice if its row had been
 * deleted. Includes one day for clock skew.
 */
const RAW_DAYS_MIN = 2;

export interface UsageToRemove {
  readonly table: string;
  /** Unix ms. */
  readonly beforeMs: number;
  readonly remove: RemoveBatch;
}

/** Returns the tables in which the workspace has a shorter retention than another workspace, so that rows must be deleted individually. */
export async function findUsageToRemove(db: Queryable, workspaceId: string, nowMs: number): Promise<UsageToRemove[]> {
  const [own, longest] = [await retentionOf(db, workspaceId), await longestRetention(db)];
  return STORED_TABLES.filter((table) => daysOf(table, own) < daysOf(table, longest)).map((table) => ({
    table: table.name,
    beforeMs: keptFromMs(daysOf(table, own), nowMs),
    remove: removeFrom(table),
  }));
}

function daysOf({ of, bucket }: StoredTable, retention: AnalyticsRetention): number {
  const days = daysKept(retention, of, bucket);
  return bucket === undefined ? Math.max(days, RAW_DAYS_MIN) : days;
}

/** Deletes events, or buckets that ended, before the given time. Uses the index on workspace and time. */
const removeFrom =
  ({ name, bucket, key }: StoredTable): RemoveBatch =>
  async (db, { workspaceId, beforeMs, rowsMax }) => {
    const before =
      bucket === undefined
        ? "$2::bigint"
        : `date_trunc('${bucket}', to_timestamp($2::bigint / 1000.0) at time zone 'UTC')`;
    const text = `delete from ${name}
                   where (${key}) in (select ${key}
                                        from ${name}
                                       where workspace_id = $1 and time < ${before}
                                       limit $3)`;
    return (await db.query({ name: `remove-${name}`, text, values: [workspaceId, beforeMs, rowsMax] })).rowCount ?? 0;
  };
