/* Parser for durations as people type them: `90s`, `5m`, `1h`, `7d`, `1h 30m`, `250ms`. */

const UNITS_MS = { d: 86_400_000, h: 3_600_000, min: 60_000, m: 60_000, s: 1000, ms: 1 } as const;
const PART = /^(\d{1,12}(?:\.\d{1,6})?)\s*(d|h|min|ms|m|s)\s*/;

/** Returns the duration in ms; `undefined` if the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  let rest = text.trim().toLowerCase();
  if (rest === "") return undefined;
  let ms = 0;
  while (rest !== "") {
    const [part, count, unit] = PART.exec(rest) ?? [];
    if (part === undefined || count === undefined) return undefined;
    ms += Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
    rest = rest.slice(part.length);
  }
  return Number.isInteger(ms) ? ms : undefined;
}

/** Returns the text that `parseDuration` parses to exactly this duration. */
export function formatDuration(ms: number): string {
  const parts: string[] = [];
  let rest = ms;
  for (const unit of ["d", "h", "min", "s", "ms"] as const) {
    const count = Math.floor(rest / UNITS_MS[unit]);
    if (count > 0) parts.push(`${count} ${unit}`);
    rest -= count * UNITS_MS[unit];
  }
  return parts.length === 0 ? "0 s" : parts.join(" ");
}

/** Parses an integer, with optional spaces or commas as thousands separators; returns `undefined` for any other text. */
export function parseCount(text: string): number | undefined {
  const digits = text.trim().replaceAll(/[\s,_]/g, "");
  const count = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(count) ? count : undefined;
}
