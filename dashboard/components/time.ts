import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import type { TimeWindow } from "../usage/buckets.ts";

/* Formats times for display. The functions are pure: the caller passes the current time. */

const UNITS = [
  { ms: 86_400_000, name: "d" },
  { ms: 3_600_000, name: "h" },
  { ms: 60_000, name: "min" },
  { ms: 1000, name: "s" },
] as const;

/** Formats a duration with its two largest units: `90_000` becomes "1 min 30 s". */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  let rest = ms;
  const parts: string[] = [];
  for (const { ms: unit, name } of UNITS) {
    const count = Math.floor(rest / unit);
    if (count > 0) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    rest -= count * unit;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** Formats a time relative to now with one unit, rounded down: "now", "2 min ago", "in 3 d". */
export function agoText(atMs: number, nowMs: number): string {
  const distance = Math.abs(nowMs - atMs);
  const unit = UNITS.find(({ ms }) => distance >= ms);
  if (unit === undefined) return "now";
  const text = `${Math.floor(distance / unit.ms)} ${unit.name}`;
  return atMs > nowMs ? `in ${text}` : `${text} ago`;
}

/** Returns the time in ms until the text of `agoText` changes next. */
export function agoLastsMs(atMs: number, nowMs: number): number {
  const distance = Math.abs(nowMs - atMs);
  const unit = UNITS.find(({ ms }) => distance >= ms)?.ms ?? 1000;
  const passed = distance % unit;
  return atMs > nowMs ? passed + 1 : unit - passed;
}

/** Returns the end of a period of days, Unix ms. It is rounded to a minute, so that pages that read the same period share a response. */
export const endOfDays = (days: number, nowMs: number): number => nowMs - (nowMs % 60_000) + days * DAY_MS;

/** Formats a time as `2026-03-01 14:05:09 UTC`, which is the same for every reader and sorts as text. */
export const exactText = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** Formats a time with milliseconds: `2026-03-01 14:05:09.120 UTC`. */
export const preciseText = (atMs: number): string =>
  new Date(atMs).toISOString().replace("T", " ").replace("Z", " UTC");

/* Local times. `zone` is the name of a time zone. Default: the browser's time zone. */

const CLOCK = { hourCycle: "h23", hour: "2-digit", minute: "2-digit" } as const;
const SECONDS = { ...CLOCK, second: "2-digit" } as const;
const DAY = { month: "short", day: "numeric" } as const;

const FORMS = {
  full: { ...DAY, year: "numeric", ...SECONDS, timeZoneName: "short" },
  yearSeconds: { ...DAY, year: "numeric", ...SECONDS },
  dateClock: { ...DAY, year: "numeric", ...CLOCK },
  date: { ...DAY, year: "numeric" },
  dayClock: { ...DAY, ...CLOCK },
  daySeconds: { ...DAY, ...SECONDS },
  seconds: SECONDS,
  precise: { ...SECONDS, fractionalSecondDigits: 3 },
  parts: { year: "numeric", month: "2-digit", day: "2-digit", ...SECONDS },
} as const satisfies Readonly<Record<string, Intl.DateTimeFormatOptions>>;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns a cached formatter, because creating one takes longer than formatting a hundred times. */
function formatOf(form: keyof typeof FORMS, zone: string | undefined): Intl.DateTimeFormat {
  const name = `${form} ${zone}`;
  const known = formats.get(name);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-US", { ...FORMS[form], timeZone: zone });
  formats.set(name, made);
  return made;
}

const inForm = (form: keyof typeof FORMS, atMs: number, zone?: string): string => formatOf(form, zone).format(atMs);

/** Returns the name of the browser's time zone, such as "Asia/Kathmandu". */
export const zoneName = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats a local time completely: "Nov 27, 2026, 14:05:09 GMT+5:45". */
export const fullText = (atMs: number, zone?: string): string => inForm("full", atMs, zone);

/** Formats a complete local time without its zone, which is shown elsewhere: "Nov 27, 2026, 14:05:09". */
export const unzonedText = (atMs: number, zone?: string): string => inForm("yearSeconds", atMs, zone);

/**
 * Formats the period of a report: "Nov 27, 2026, 14:00 to Nov 28, 2026, 14:00 (Asia/Kathmandu), by the hour". A period of days is in UTC,
 * because usage is counted per UTC day: "2026-11-01 to 2026-11-28, by the UTC day".
 */
export function windowText({ fromMs, toMs, bucket }: TimeWindow, zone = zoneName()): string {
  return bucket === "day"
    ? `${utcDate(fromMs)} to ${utcDate(toMs - 1)}, by the UTC day`
    : `${inForm("dateClock", fromMs, zone)} to ${inForm("dateClock", toMs, zone)} (${zone}), by the ${bucket}`;
}

/** Formats a local day: "Feb 26, 2027". */
export const dayText = (atMs: number, zone?: string): string => inForm("date", atMs, zone);

/** Formats a local time for a list: "14:05:09" today, "Nov 27, 14:05" this year, otherwise "Nov 27, 2024". */
export function shortText(atMs: number, nowMs: number, zone?: string): string {
  const [date, today] = [inForm("date", atMs, zone), inForm("date", nowMs, zone)];
  if (date === today) return inForm("seconds", atMs, zone);
  return date.slice(-4) === today.slice(-4) ? inForm("dayClock", atMs, zone) : date;
}

/** Formats a local time for a log: "14:05:09.120", or "Nov 27, 14:05:09" for a day other than today. */
export const logText = (atMs: number, nowMs: number, zone?: string): string =>
  inForm(inForm("date", atMs, zone) === inForm("date", nowMs, zone) ? "precise" : "daySeconds", atMs, zone);

/** Returns the local date and clock time as if they were UTC: Unix ms, in whole seconds. */
function wallMs(atMs: number, zone?: string): number {
  const parts = new Map(
    formatOf("parts", zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, value]),
  );
  const [year, month, day, hour, minute, second] = (["year", "month", "day", "hour", "minute", "second"] as const).map(
    (type) => Number(parts.get(type)),
  ) as [number, number, number, number, number, number];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** Formats a time to the minute for `<input type="datetime-local">`, which has no time zone. */
export const localInput = (atMs: number, zone?: string): string =>
  new Date(wallMs(atMs, zone)).toISOString().slice(0, 16);

/**
 * Reads the text of `<input type="datetime-local">`. Returns "skipped" for a time that the clock skips when summer time begins. Of a time
 * that occurs twice when summer time ends, returns the first.
 */
export function readLocalInput(text: string, zone?: string): number | "skipped" | undefined {
  const wall = Date.parse(`${text}Z`);
  if (Number.isNaN(wall)) return undefined;
  const found = [wall - DAY_MS, wall + DAY_MS]
    .map((near) => wall - (wallMs(near, zone) - near))
    .filter((atMs) => wallMs(atMs, zone) === wall);
  return found.length === 0 ? "skipped" : Math.min(...found);
}
