import { findLongestRetention, findRetention, type RetentionRow } from "../store/analytics-settings.ts";
import type { Queryable } from "../store/queryable.ts";
import { type AnalyticsRetention, DEFAULT_RETENTION } from "./retention.ts";

/** For how long this workspace's usage can be asked for. */
export async function retentionOf(db: Queryable, workspaceId: string): Promise<AnalyticsRetention> {
  return completeRetention(await findRetention(db, { workspaceId }));
}

/** What has to be kept of all workspaces together: of each kind, the longest that any of them has, and at least the default. */
export async function longestRetention(db: Queryable): Promise<AnalyticsRetention> {
  const longest = completeRetention(await findLongestRetention(db));
  const { ratelimits } = DEFAULT_RETENTION;
  return {
    verifications: Math.max(longest.verifications, DEFAULT_RETENTION.verifications),
    ratelimits: {
      raw: Math.max(longest.ratelimits.raw, ratelimits.raw),
      minute: Math.max(longest.ratelimits.minute, ratelimits.minute),
      hour: Math.max(longest.ratelimits.hour, ratelimits.hour),
      day: Math.max(longest.ratelimits.day, ratelimits.day),
      month: Math.max(longest.ratelimits.month, ratelimits.month),
    },
  };
}

/** What is null has its default. */
export function completeRetention(row: RetentionRow | undefined): AnalyticsRetention {
  const { verifications, ratelimits } = DEFAULT_RETENTION;
  return {
    verifications: row?.verifications_days ?? verifications,
    ratelimits: {
      raw: row?.ratelimits_days ?? ratelimits.raw,
      minute: row?.ratelimits_minute_days ?? ratelimits.minute,
      hour: row?.ratelimits_hour_days ?? ratelimits.hour,
      day: row?.ratelimits_day_days ?? ratelimits.day,
      month: row?.ratelimits_month_days ?? ratelimits.month,
    },
  };
}
