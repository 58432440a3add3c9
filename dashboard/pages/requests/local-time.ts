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
