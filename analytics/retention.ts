import { DAY_MS } from "../core/utc-date.ts";
import type { AnalyticsOf, Bucket } from "./tables.ts";

/** Retention of a workspace's usage in days. `raw` is the retention of individual events. */
export interface AnalyticsRetention {
  /** Retention of raw events and all buckets. */
  readonly verifications: number;
  readonly ratelimits: Readonly<Record<Bucket | "raw", number>>;
}

/** Retention of a workspace without settings of its own (api-v2.md sections 18.3 and 18.4). */
export const DEFAULT_RETENTION: AnalyticsRetention = {
  verifications: 30,
  ratelimits: { raw: 30, minute: 7, hour: 30, day: 100, month: 1095 },
};

/** Returns the retention of a table in days; `bucket` is `undefined` for raw events. */
export const daysKept = (retention: AnalyticsRetention, of: AnalyticsOf, bucket: Bucket | undefined): number =>
  of === "verifications" ? retention.verifications : retention.ratelimits[bucket ?? "raw"];

/** Returns the start of retention in Unix ms; data that ended before it is deleted. */
export const keptFromMs = (days: number, nowMs: number): number => nowMs - days * DAY_MS;
