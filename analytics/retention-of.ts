import type { Queryable } from "../postgres/queryable.ts";
import { type AnalyticsRetention, DEFAULT_RETENTION } from "./retention.ts";
import { findLongestRetention, findRetention, type RetentionRow } from "./retention-settings.ts";

/** Returns the retention of a workspace. */
export async function retentionOf(db: Queryable, workspaceId: string): Promise<AnalyticsRetention> {
  return completeRetention(await findRetention(db, { workspaceId }));
}

/** Returns the longest retention of any workspace for each kind, and at least the default. */
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

/** Replaces null members by their defaults. */
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
