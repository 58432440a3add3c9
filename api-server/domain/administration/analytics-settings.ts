import { type AnalyticsRetention, DEFAULT_RETENTION, daysKept } from "../../../analytics/retention.ts";
import type { AnalyticsOf, Bucket } from "../../../analytics/tables.ts";
import { ANALYTICS_LIMITS, type AnalyticsLimits } from "../analytics/limits.ts";
import type { AnalyticsSettings } from "../analytics/settings.ts";
import { type AnalyticsChange, RETENTION_DAYS_MAX } from "./analytics.ts";

/*
 * A setting of a workspace's analytics, as a row of a table. The command's options and the procedures' input and output members are
 * generated from this table.
 */

export interface AnalyticsSetting {
  /** Name of the option without its leading dashes, such as `query-rows`. */
  readonly option: string;
  /** Name of the setting in the API, such as `queryRows`. */
  readonly name: string;
  readonly help: string;
  readonly column: keyof AnalyticsChange;
  /** Minimum value, in the unit in which users enter the setting. */
  readonly min: number;
  readonly max: number;
  readonly byDefault: number;
  /** Number of stored units per entered unit. */
  readonly unit: number;
  /** Returns the active value in stored units. */
  readonly value: (settings: AnalyticsSettings) => number;
}

const camelCase = (option: string): string => option.replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());

const limit = (
  option: string,
  help: string,
  { column, of, unit = 1 }: { column: keyof AnalyticsChange; of: keyof AnalyticsLimits; unit?: number },
): AnalyticsSetting => {
  const { byDefault, min, max } = ANALYTICS_LIMITS[of];
  const bounds = { byDefault: byDefault / unit, min: Math.ceil(min / unit), max: Math.floor(max / unit) };
  return { option, name: camelCase(option), help, column, unit, ...bounds, value: ({ limits }) => limits[of] };
};

const retention = (
  option: string,
  help: string,
  { column, of, bucket }: { column: keyof AnalyticsChange; of: AnalyticsOf; bucket?: Bucket },
): AnalyticsSetting => {
  const days = (kept: AnalyticsRetention): number => daysKept(kept, of, bucket);
  const bounds = { byDefault: days(DEFAULT_RETENTION), min: 1, max: RETENTION_DAYS_MAX };
  return {
    option,
    name: camelCase(option),
    help,
    column,
    unit: 1,
    ...bounds,
    value: (settings) => days(settings.retention),
  };
};

const MIB = 1024 * 1024;

export const ANALYTICS_SETTINGS: readonly AnalyticsSetting[] = [
  limit("query-rows", "rows of a query's result", { column: "rows_max", of: "rowsMax" }),
  limit("query-seconds", "maximum run time of a query", { column: "timeout_ms", of: "timeoutMs", unit: 1000 }),
  limit("query-memory-mb", "memory of a query, MB", {
    column: "memory_bytes_max",
    of: "memoryBytesMax",
    unit: 1_000_000,
  }),
  limit("max-response-mib", "size of a query's response, MiB", {
    column: "response_bytes_max",
    of: "answerBytesMax",
    unit: MIB,
  }),
  limit("queries-per-hour", "queries per hour; 0 rejects every query", {
    column: "queries_per_hour",
    of: "queriesPerHour",
  }),
  limit("query-seconds-per-hour", "total run time of all queries per hour", {
    column: "run_ms_per_hour",
    of: "runMsPerHour",
    unit: 1000,
  }),
  retention("verifications-days", "queryable days of verifications", {
    column: "verifications_days",
    of: "verifications",
  }),
  retention("ratelimits-days", "queryable days of individual rate-limit decisions", {
    column: "ratelimits_days",
    of: "ratelimits",
  }),
  retention("ratelimits-minute-days", "queryable days of rate-limit counts per minute", {
    column: "ratelimits_minute_days",
    of: "ratelimits",
    bucket: "minute",
  }),
  retention("ratelimits-hour-days", "queryable days of rate-limit counts per hour", {
    column: "ratelimits_hour_days",
    of: "ratelimits",
    bucket: "hour",
  }),
  retention("ratelimits-day-days", "queryable days of rate-limit counts per day", {
    column: "ratelimits_day_days",
    of: "ratelimits",
    bucket: "day",
  }),
  retention("ratelimits-month-days", "queryable days of rate-limit counts per month", {
    column: "ratelimits_month_days",
    of: "ratelimits",
    bucket: "month",
  }),
];
