import type { RetentionRow } from "../../analytics/retention.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/** Analytics settings of a workspace; `null` means the default. */
export interface AnalyticsSettingsRow extends RetentionRow {
  readonly enabled: boolean;
  readonly rows_max: number | null;
  readonly timeout_ms: number | null;
  readonly memory_bytes_max: number | null;
  readonly response_bytes_max: number | null;
  readonly queries_per_hour: number | null;
  readonly run_ms_per_hour: number | null;
}

/** Returns the analytics settings of a workspace; `undefined` if it has none. */
export async function findAnalyticsSettings(
  db: Queryable,
  { workspaceId }: { workspaceId: string },
): Promise<AnalyticsSettingsRow | undefined> {
  const text = `select enabled, rows_max, timeout_ms, memory_bytes_max, response_bytes_max, queries_per_hour, run_ms_per_hour,
                       verifications_days, ratelimits_days, ratelimits_minute_days, ratelimits_hour_days,
                       ratelimits_day_days, ratelimits_month_days
                  from analytics_settings
                 where workspace_id = $1`;
  const { rows } = await db.query<AnalyticsSettingsRow>({
    name: "find-analytics-settings",
    text,
    values: [workspaceId],
  });
  return rows[0];
}

export async function putAnalyticsSettings(
  tx: Queryable,
  { workspaceId, row }: { workspaceId: string; row: AnalyticsSettingsRow },
): Promise<void> {
  const text = `insert into analytics_settings as s
                       (workspace_id, enabled, rows_max, timeout_ms, memory_bytes_max, response_bytes_max, queries_per_hour,
                        run_ms_per_hour, verifications_days, ratelimits_days, ratelimits_minute_days, ratelimits_hour_days,
                        ratelimits_day_days, ratelimits_month_days)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
                on conflict (workspace_id) do update
                   set enabled = excluded.enabled, rows_max = excluded.rows_max, timeout_ms = excluded.timeout_ms,
                       memory_bytes_max = excluded.memory_bytes_max, response_bytes_max = excluded.response_bytes_max,
                       queries_per_hour = excluded.queries_per_hour, run_ms_per_hour = excluded.run_ms_per_hour,
                       verifications_days = excluded.verifications_days, ratelimits_days = excluded.ratelimits_days,
                       ratelimits_minute_days = excluded.ratelimits_minute_days,
                       ratelimits_hour_days = excluded.ratelimits_hour_days,
                       ratelimits_day_days = excluded.ratelimits_day_days,
                       ratelimits_month_days = excluded.ratelimits_month_days`;
  const values = [
    workspaceId,
    row.enabled,
    row.rows_max,
    row.timeout_ms,
    row.memory_bytes_max,
    row.response_bytes_max,
    row.queries_per_hour,
    row.run_ms_per_hour,
    row.verifications_days,
    row.ratelimits_days,
    row.ratelimits_minute_days,
    row.ratelimits_hour_days,
    row.ratelimits_day_days,
    row.ratelimits_month_days,
  ];
  await tx.query({ name: "put-analytics-settings", text, values });
}
