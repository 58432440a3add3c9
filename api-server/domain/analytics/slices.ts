import type { Slice } from "../../analytics/counts.ts";

/* Parts of the calendar in UTC. All instants are Unix ms that a Date can hold. */

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The start of the slice in which the instant lies. */
export function sliceStart(slice: Slice, ms: number): number {
  if (slice === "hour") return Math.floor(ms / HOUR_MS) * HOUR_MS;
  if (slice === "day") return Math.floor(ms / DAY_MS) * DAY_MS;
  return monthStart(monthNumber(ms));
}

/** How many slices there are from that of `startMs` to that of `endMs`, both included; none when the second is the earlier one. */
export function countSlices(slice: Slice, startMs: number, endMs: number): number {
  return Math.max(0, sliceNumber(slice, endMs) - sliceNumber(slice, startMs) + 1);
}

/** The starts of those slices, ascending. */
export function slicesBetween(slice: Slice, startMs: number, endMs: number): number[] {
  const first = sliceNumber(slice, startMs);
  return Array.from({ length: countSlices(slice, startMs, endMs) }, (_, index) => startOf(slice, first + index));
}

const sliceNumber = (slice: Slice, ms: number): number =>
  slice === "month" ? monthNumber(ms) : Math.floor(ms / (slice === "day" ? DAY_MS : HOUR_MS));

const startOf = (slice: Slice, number: number): number =>
  slice === "month" ? monthStart(number) : number * (slice === "day" ? DAY_MS : HOUR_MS);

/** Months since the year 0. */
function monthNumber(ms: number): number {
  const date = new Date(ms);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function monthStart(number: number): number {
  const year = Math.floor(number / 12);
  // Date.UTC reads the years 0 to 99 as those of the 20th century.
  return new Date(0).setUTCFullYear(year, number - year * 12, 1);
}

export interface Window {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
}

/** The hours from that of `startMs` to that of `endMs`, both included. */
export const wholeHours = (startMs: number, endMs: number): Window => ({
  fromMs: sliceStart("hour", startMs),
  toMs: sliceStart("hour", endMs) + HOUR_MS,
});
