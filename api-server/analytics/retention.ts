import { DAY_MS } from "../../core/utc-date.ts";
import type { AnalyticsOf, Bucket } from "./tables.ts";

/** For how many days a workspace's usage can be asked for. `raw` is the events themselves. */
export interface AnalyticsRetention {
  /** Raw events and all buckets. */
  readonly verifications: number;
  readonly ratelimits: Readonly<Record<Bucket | "raw", number>>;
}

/** What a workspace has that set nothing else (api-v2.md sections 18.3 and 18.4). */
export const DEFAULT_RETENTION: AnalyticsRetention = {
  verifications: 30,
  ratelimits: { raw: 30, minute: 7, hour: 30, day: 100, month: 1095 },
};

/** How many days the rows of a table are kept; no bucket for the table of raw events. */
export const daysKept = (retention: AnalyticsRetention, of: AnalyticsOf, bucket: Bucket | undefined): number =>
  of === "verifications" ? retention.verifications : retention.ratelimits[bucket ?? "raw"];

/** Unix ms; what ended before it is not kept any more. */
export const keptFromMs = (days: number, nowMs: number): number => nowMs - days * DAY_MS;
