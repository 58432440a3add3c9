const UNITS = [
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** Formats integer milliseconds in the notation of manifests, such as `1h30m`. `parseDuration` parses the result to the same number. */
export function formatDuration(ms: number): string {
  let rest = ms;
  let text = "";
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === "" ? "0s" : text;
}
