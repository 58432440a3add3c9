import type { Slice } from "../../../analytics/counts.ts";

/* Calendar slices in UTC. All times are Unix ms that a `Date` can represent. */

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Returns the start of the slice that contains the time. */
export function sliceStart(slice: Slice, ms: number): number {
  if (slice === "hour") return Math.floor(ms / HOUR_MS) * HOUR_MS;
  if (slice === "day") return Math.floor(ms / DAY_MS) * DAY_MS;
  return monthStart(monthNumber(ms));
}

/**
 * Returns the number of slices from the one that contains `startMs` to the one that contains `endMs`, both inclusive; 0 if `endMs` is in an
 * earlier slice.
 */
export function countSlices(slice: Slice, startMs: number, endMs: number): number {
  return Math.max(0, sliceNumber(slice, endMs) - sliceNumber(slice, startMs) + 1);
}

/** Returns the starts of the slices between two times, both inclusive, ascending. */
export function slicesBetween(slice: Slice, startMs: number, endMs: number): number[] {
  const first = sliceNumber(slice, startMs);
  return Array.from({ length: countSlices(slice, startMs, endMs) }, (_, index) => startOf(slice, first + index));
}

const sliceNumber = (slice: Slice, ms: number): number =>
  slice === "month" ? monthNumber(ms) : Math.floor(ms / (slice === "day" ? DAY_MS : HOUR_MS));

const startOf = (slice: Slice, number: number): number =>
  slice === "month" ? monthStart(number) : number * (slice === "day" ? DAY_MS : HOUR_MS);

/** Returns the number of months since the year 0. */
function monthNumber(ms: number): number {
  const date = new Date(ms);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function monthStart(number: number): number {
  const year = Math.floor(number / 12);
  // Sets the year separately, because Date.UTC maps the years 0 to 99 to the 20th century.
  return new Date(0).setUTCFullYear(year, number - year * 12, 1);
}

export interface Window {
  readonly fromMs: number;
  /** End of the window, exclusive. */
  readonly toMs: number;
}

/** Returns the window of full hours that begins with the hour of `startMs` and ends with the hour of `endMs`, both inclusive. */
export const fullHours = (startMs: number, endMs: number): Window => ({
  fromMs: sliceStart("hour", startMs),
  toMs: sliceStart("hour", endMs) + HOUR_MS,
});
