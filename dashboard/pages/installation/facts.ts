import { durationText } from "../../components/time.ts";

/* Texts for the details that admin.getInstallation returns. The suffix of a member's name is its unit. The functions are pure. */

export const PART_TITLES: Readonly<Record<string, string>> = {
  postgres: "Postgres",
  redis: "Redis",
  relay: "Relay",
  projection: "Projection",
  events: "Queued usage events",
  usage: "Analytics store",
  "api-servers": "Api-servers",
  sidecars: "Sidecars",
  encryption: "Encryption keys in use",
  certificate: "Certificate of the API",
  retention: "Retention",
};

const UNIT = /(Bytes|Ms|At|Days)$/;

/** Returns the label of a member: `memoryMaxBytes` becomes "memory max". */
export function labelOf(name: string): string {
  if (!/^[a-z][a-zA-Z]*$/.test(name)) return name;
  return name
    .replace(UNIT, "")
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
}

/** Returns whether a fact is a time, Unix ms. */
export const isTime = (name: string, value: string | number | boolean): value is number =>
  typeof value === "number" && UNIT.exec(name)?.[1] === "At";

export function factText(name: string, value: string | number | boolean): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  switch (UNIT.exec(name)?.[1]) {
    case "Bytes":
      return bytesText(value);
    case "Ms":
      return durationText(value);
    case "Days":
      return value === 0 ? "indefinitely" : `${value} days`;
    default:
      return value.toLocaleString("en");
  }
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytesText(bytes: number): string {
  const place = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const value = bytes / 1024 ** place;
  return `${value.toLocaleString("en", { maximumFractionDigits: place === 0 ? 0 : 1 })} ${UNITS[place]}`;
}
