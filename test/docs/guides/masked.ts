/* Answers of the API as pages show them: what differs from run to run is masked, the rest is as it came. */

/** Times this near to the call were made from it, in Unix milliseconds. A page shows one moment for all of them. */
const NEAR_MS = 31 * 24 * 3_600_000;
const SHOWN_TIME_MS = 1_795_000_000_000;

/** Ids and keys: a prefix, and as many random characters as only they have. */
const RANDOM = /\b([a-z]+(?:_[a-z]+)*)_[A-Za-z0-9]{16,}\b/g;
/** The beginning of a key, a member of its own. */
const START = /_[A-Za-z0-9]{4}$/;
const LINE = 118;

/** Returns the value with its ids, keys, and times around `nowMs` masked. */
export function masked(value: unknown, nowMs: number, name = ""): unknown {
  if (typeof value === "string")
    return name === "start" ? value.replace(START, "_…") : value.replaceAll(RANDOM, "$1_…");
  if (typeof value === "number") return Math.abs(value - nowMs) < NEAR_MS ? SHOWN_TIME_MS : value;
  if (Array.isArray(value)) return value.map((one) => masked(one, nowMs, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, masked(one, nowMs, key)]));
}

/** JSON as a page shows it: what fits stands on one line. Ends with a line break. */
export const responseText = (value: unknown): string => `${json(value, 0)}\n`;

function json(value: unknown, indent: number): string {
  const short = onOneLine(value);
  if (short.length + indent <= LINE && !(indent === 0 && typeof value === "object")) return short;
  if (typeof value !== "object" || value === null) return short;
  const space = " ".repeat(indent + 2);
  const inner = Array.isArray(value)
    ? value.map((one) => `${space}${json(one, indent + 2)}`)
    : Object.entries(value).map(([key, one]) => `${space}${JSON.stringify(key)}: ${json(one, indent + 2)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${inner.join(",\n")}\n${" ".repeat(indent)}${close}`;
}

function onOneLine(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(", ")}]`;
  const members = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${onOneLine(one)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
