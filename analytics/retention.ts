import { DAY_MS } from "../core/utc-date.ts";
import type { Queryable } from "../postgres/queryable.ts";
import type { AnalyticsOf, Bucket } from "./tables.ts";

/** Retention of a workspace's usage in days. `raw` is the retention of individual events. */
export interface AnalyticsRetention {
  /** Retention of raw events and all buckets. */
  readonly verifications: number;
  readonly ratelimits: Readonly<Record<Bucket | "raw", number>>;
}

/** Retention of a workspace that has no settings (api-v2.md sections 18.3 and 18.4). */
export const DEFAULT_RETENTION: AnalyticsRetention = {
  verifications: 30,
  ratelimits: { raw: 30, minute: 7, hour: 30, day: 100, month: 1095 },
};

/** Returns the retention of a table in days; `bucket` is `undefined` for raw events. */
export const daysKept = (retention: AnalyticsRetention, of: AnalyticsOf, bucket: Bucket | undefined): number =>
  of === "verifications" ? retention.verifications : retention.ratelimits[bucket ?? "raw"];

/** Returns the start of retention in Unix ms. Data that ended before it is deleted. */
export const keptFromMs = (days: number, nowMs: number): number => nowMs - days * DAY_MS;

/** Retention settings of a workspace, in days; `null` means the default. */
export interface RetentionRow {
  readonly verifications_days: number | null;
  readonly ratelimits_days: number | null;
  readonly ratelimits_minute_days: number | null;
  readonly ratelimits_hour_days: number | null;
  readonly ratelimits_day_days: number | null;
  readonly ratelimits_month_days: number | null;
}

/** Returns the retention settings of a workspace; `undefined` if it has none. */
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

/** Returns the longest retention that any workspace has set; `null` for members that no workspace has set. */
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

/** Returns the retention of a workspace. */
export async function retentionOf(db: Queryable, workspaceId: string): Promise<AnalyticsRetention> {
  return completeRetention(await findRetention(db, { workspaceId }));
}

/** Returns, for each kind, the longest retention of any workspace, but at least the default. */
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
