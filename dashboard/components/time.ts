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

/** Returns the end of a period of days, Unix ms, to the minute, so that pages that read the same period share a response. */
export const endOfDays = (days: number, nowMs: number): number => nowMs - (nowMs % 60_000) + days * 86_400_000;

/** Formats a time as `2026-03-01 14:05:09 UTC`, which is the same for every reader and sorts as text. */
export const exactText = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;

const HOURS = { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;

/** Formats a time in the time zone of the browser: "14:05:09.120", or "Nov 27, 14:05:09" on another day than now. */
export function localText(atMs: number, nowMs: number): string {
  const [at, now] = [new Date(atMs), new Date(nowMs)];
  return at.toDateString() === now.toDateString()
    ? at.toLocaleTimeString("en", { ...HOURS, fractionalSecondDigits: 3 })
    : at.toLocaleString("en", { ...HOURS, month: "short", day: "numeric" });
}

/** Formats a time with milliseconds: `2026-03-01 14:05:09.120 UTC`. */
export const preciseText = (atMs: number): string =>
  new Date(atMs).toISOString().replace("T", " ").replace("Z", " UTC");
