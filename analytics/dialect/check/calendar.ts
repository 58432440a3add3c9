import type { IntervalUnit } from "../tree.ts";

/* Calendar arithmetic on timestamps in Unix ms, UTC: bucket starts and additions of units. */

export type BucketUnit = "second" | "minute" | "hour" | "day" | "week" | "mondayWeek" | "month" | "quarter" | "year";

const DAY_MS = 86_400_000;
const FIXED_MS: Readonly<Partial<Record<BucketUnit | IntervalUnit, number>>> = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
};
const MONTHS: Readonly<Partial<Record<BucketUnit | IntervalUnit, number>>> = { month: 1, quarter: 3, year: 12 };
/** Start of the first week after the epoch, which was a Thursday: a Sunday for `week`, a Monday for `mondayWeek`. */
const WEEK_BEGINS_MS = { week: 3 * DAY_MS, mondayWeek: 4 * DAY_MS };

/** Returns the start of the bucket that contains the timestamp. A `week` begins on Sunday, a `mondayWeek` on Monday. */
export function startOf(unit: BucketUnit, ms: number): number {
  const fixedMs = FIXED_MS[unit];
  if (fixedMs !== undefined) return Math.floor(ms / fixedMs) * fixedMs;
  if (unit === "week" || unit === "mondayWeek") {
    const begins = WEEK_BEGINS_MS[unit];
    return Math.floor((ms - begins) / (7 * DAY_MS)) * 7 * DAY_MS + begins;
  }
  const months = MONTHS[unit] ?? 1;
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), Math.floor(date.getUTCMonth() / months) * months, 1);
}

/**
 * Adds units to a timestamp. A day that does not exist in the target month becomes the month's last day. Fractions of a ms are truncated.
 */
export function plusUnits(
  ms: number,
  { count, unit }: { readonly count: number; readonly unit: IntervalUnit },
): number {
  if (unit === "nanosecond") return ms + Math.trunc(count / 1e6);
  if (unit === "microsecond") return ms + Math.trunc(count / 1e3);
  if (unit === "week") return ms + count * 7 * DAY_MS;
  const fixedMs = FIXED_MS[unit];
  if (fixedMs !== undefined) return ms + count * fixedMs;
  const date = new Date(ms);
  const month = date.getUTCMonth() + count * (MONTHS[unit] ?? 1);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate();
  const first = Date.UTC(date.getUTCFullYear(), month, 1);
  return first + (Math.min(date.getUTCDate(), lastDay) - 1) * DAY_MS + (ms - startOf("day", ms));
}
