import type { VisibleFrom } from "../../../analytics/contract.ts";
import { type AnalyticsRetention, completeRetention, daysKept, keptFromMs } from "../../../analytics/retention.ts";
import type { AnalyticsOf, Bucket } from "../../../analytics/tables.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { type AnalyticsSettingsRow, findAnalyticsSettings } from "../../db/analytics-limits.ts";
import { type AnalyticsLimits, completeLimits } from "./limits.ts";

/** Active analytics settings of a workspace. */
export interface AnalyticsSettings {
  /** Whether queries are allowed. If false, events are still stored. */
  readonly enabled: boolean;
  readonly limits: AnalyticsLimits;
  readonly retention: AnalyticsRetention;
}

/** Reads the active settings. They are read for each query, so that a change takes effect immediately in every replica. */
export const analyticsSettingsOf = async (db: Queryable, workspaceId: string): Promise<AnalyticsSettings> =>
  completeSettings((await findAnalyticsSettings(db, { workspaceId })) ?? NOTHING_SET);

export const NOTHING_SET: AnalyticsSettingsRow = {
  enabled: true,
  rows_max: null,
  timeout_ms: null,
  memory_bytes_max: null,
  response_bytes_max: null,
  queries_per_hour: null,
  run_ms_per_hour: null,
  verifications_days: null,
  ratelimits_days: null,
  ratelimits_minute_days: null,
  ratelimits_hour_days: null,
  ratelimits_day_days: null,
  ratelimits_month_days: null,
};

export const completeSettings = (row: AnalyticsSettingsRow): AnalyticsSettings => ({
  enabled: row.enabled,
  limits: completeLimits({
    rowsMax: row.rows_max,
    timeoutMs: row.timeout_ms,
    memoryBytesMax: row.memory_bytes_max,
    answerBytesMax: row.response_bytes_max,
    queriesPerHour: row.queries_per_hour,
    runMsPerHour: row.run_ms_per_hour,
  }),
  retention: completeRetention(row),
});

/** Returns, for each table, the earliest time of the rows that a workspace can see. */
export function visibleFrom(retention: AnalyticsRetention, of: AnalyticsOf, nowMs: number): VisibleFrom {
  const from = (bucket: Bucket | undefined): number => keptFromMs(daysKept(retention, of, bucket), nowMs);
  return { raw: from(undefined), minute: from("minute"), hour: from("hour"), day: from("day"), month: from("month") };
}
