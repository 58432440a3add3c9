import type { Queryable } from "../postgres/queryable.ts";

/** Retention settings of a workspace, in days; `null` means the default. */
export interface RetentionRow {
  readonly verifications_days: number | null;
  readonly ratelimits_days: number | null;
  readonly ratelimits_minute_days: number | null;
  readonly ratelimits_hour_days: number | null;
  readonly ratelimits_day_days: number | null;
  readonly ratelimits_month_days: number | null;
}

/** Returns `undefined` if the workspace has no settings. */
export async function findRetention(
  db: Queryable,
  { workspaceId }: { workspaceId: string },
): Promise<RetentionRow | undefined> {
  const text = `select verifications_days, ratelimits_days, ratelimits_minute_days, ratelimits_hour_days,
                       ratelimits_day_days, ratelimits_month_days
                  from analytics_settings
                 where workspace_id = $1`;
  const { rows } = await db.query<RetentionRow>({ name: "find-retention", text, values: [workspaceId] });
  return rows[0];
}

/** Returns the longest retention over all workspaces; `null` where no workspace has set one. */
export async function findLongestRetention(db: Queryable): Promise<RetentionRow | undefined> {
  const text = `select max(verifications_days) as verifications_days,
                       max(ratelimits_days) as ratelimits_days,
                       max(ratelimits_minute_days) as ratelimits_minute_days,
                       max(ratelimits_hour_days) as ratelimits_hour_days,
                       max(ratelimits_day_days) as ratelimits_day_days,
                       max(ratelimits_month_days) as ratelimits_month_days
                  from analytics_settings`;
  const { rows } = await db.query<RetentionRow>({ name: "find-longest-retention", text });
  return rows[0];
}
