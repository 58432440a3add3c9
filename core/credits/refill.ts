import { DAY_MS } from "../utc-date.ts";

/*
 * Refills are due on calendar dates in UTC (api-v2.md section 10.2), written `YYYY-MM-DD`. Missed refills are applied later, at most 31 of
 * them.
 */

export interface Refill {
  readonly interval: "daily" | "monthly";
  /** Credits added at each due date. */
  readonly amount: number;
  /** Day of the month for a `monthly` refill, 1 to 31. In a shorter month, the last day of the month applies. */
  readonly refillDay?: number | undefined;
}

const MADE_UP_FOR_MAX = 31;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

/**
 * Returns the number of due dates after `lastRefillOn`, up to and including `today`; at most 31. Throws `RangeError` if a date is invalid.
 */
export function dueRefills({
  interval,
  refillDay,
  lastRefillOn,
  today,
}: {
  interval: "daily" | "monthly";
  refillDay?: number | undefined;
  lastRefillOn: string;
  today: string;
}): number {
  const last = parseDate(lastRefillOn);
  const now = parseDate(today);
  if (interval === "daily") return Math.min(MADE_UP_FOR_MAX, Math.max(0, (now.ms - last.ms) / DAY_MS));
  const months = now.month - last.month;
  if (months < 0) return 0;
  // Each month between the first and the last has one due date. The due dates of the first and the last month count only if they are in the
  // range.
  const dueIn = (month: number): number => Math.min(refillDay ?? 1, daysIn(month));
  const lastIsPast = last.day >= dueIn(last.month) ? 1 : 0;
  const todayIsBefore = now.day < dueIn(now.month) ? 1 : 0;
  return Math.min(MADE_UP_FOR_MAX, Math.max(0, months + 1 - lastIsPast - todayIsBefore));
}

/** Returns the credits after `times` refills, at most 2^53 − 1. */
export function refilledAmount({
  remaining,
  amount,
  times,
}: {
  remaining: number;
  amount: number;
  times: number;
}): number {
  return Math.min(Number.MAX_SAFE_INTEGER, remaining + amount * times);
}

/** `month` counts months since year 0, so the difference between two values is a number of months. */
function parseDate(text: string): { ms: number; month: number; day: number } {
  const [, year, month, day] = DATE.exec(text) ?? [];
  const ms = Date.parse(`${text}T00:00:00Z`);
  const parsed = { ms, month: Number(year) * 12 + Number(month) - 1, day: Number(day) };
  // Rejects dates such as 30 February, which `Date.parse` reads as 1 March.
  if (Number.isNaN(ms) || parsed.day > daysIn(parsed.month))
    throw new RangeError(`${JSON.stringify(text)} is not a date`);
  return parsed;
}

const daysIn = (month: number): number => new Date(Date.UTC(Math.floor(month / 12), (month % 12) + 1, 0)).getUTCDate();
