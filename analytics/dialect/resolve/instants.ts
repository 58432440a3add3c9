const DAY_MS = 86_400_000;

/**
 * Returns the Unix ms of a local time of the zone, given as if it were in UTC. Of a time that the zone has twice, and of a time that it
 * lacks, ClickHouse takes the earlier reading.
 */
export function instantOf(localMs: number, zone: string): number {
  const readings = [-DAY_MS, DAY_MS].map((distance) => localMs - offsetMs(localMs + distance, zone));
  const actual = readings.filter((ms) => ms + offsetMs(ms, zone) === localMs);
  return Math.min(...(actual.length > 0 ? actual : readings));
}

/** @throws RangeError for an unknown zone. */
export function offsetMs(ms: number, zone: string): number {
  const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const text = format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const [, sign, hours, minutes, seconds] = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text) ?? [];
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60 + Number(seconds ?? 0);
  return (sign === "-" ? -1 : 1) * offset * 1000;
}
