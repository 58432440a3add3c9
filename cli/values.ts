import { EXPIRES_MAX_MS } from "../core/keys/key-hash.ts";
import { parseDuration } from "../core/manifests/duration.ts";
import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import { type IpRange, parseIpRange } from "../core/verification/ip-address.ts";
import { UsageError } from "./command.ts";

const DAY_MS = 86_400_000;

/* Parsers of option values. Each throws a `UsageError` that states the expected value. */

/** Returns the error for an invalid value. `option` may end with the variable that contains the value: `port (POSTERN_API_PORT)`. */
export const invalidValue = (option: string, text: string, expected: string): UsageError =>
  new UsageError(`invalid value "${text}" for --${option}: must be ${expected}`);

/** Parses a port; 0 selects a free port. */
export function parsePort(option: string, text: string): number {
  const port = Number(text);
  if (text === "" || !Number.isInteger(port) || port < 0 || port > 65535) {
    throw invalidValue(option, text, "a port number from 0 to 65535");
  }
  return port;
}

/** Parses `PORT`, or `HOST:PORT` with an IPv6 address in brackets. `host` is the default host. */
export function parseListen(option: string, text: string, host: string): { host: string; port: number } {
  const [, bracketed, named, port] = /^(?:\[([\da-fA-F:.]+)\]:|([^:[\]\s]+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === undefined) throw invalidValue(option, text, "a port or HOST:PORT");
  return { host: bracketed ?? named ?? host, port: parsePort(option, port) };
}

/** Parses comma-separated addresses and CIDR blocks such as `10.0.0.0/8`. */
export function parseBlocks(option: string, text: string): IpRange[] {
  return text.split(",").map((part) => {
    const range = parseIpRange(part.trim());
    if (range === undefined) {
      throw invalidValue(option, part, "a list of IP addresses or CIDR blocks such as 10.0.0.0/8, separated by commas");
    }
    return range;
  });
}

/** Parses an http or https URL and returns its origin. */
export function parseHttpUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidValue(option, text, "a URL such as http://127.0.0.1:3000");
  }
  return url.origin;
}

/** Parses an http or https URL and returns it with its path, without a trailing slash. */
export function parseBaseUrl(option: string, text: string): string {
  const origin = parseHttpUrl(option, text);
  return `${origin}${new URL(text).pathname.replace(/\/+$/, "")}`;
}

/** Parses a decimal integer from `min` to `max`. `or` names another accepted word, for the error message. */
export function parseInteger(option: string, text: string, range: { min: number; max: number; or?: string }): number {
  const { min, max, or } = range;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  const word = or === undefined ? "" : `, or ${or}`;
  throw invalidValue(option, text, `an integer from ${min} to ${max}${word}`);
}

/**
 * Parses a duration such as `500ms`, `60s`, `1h30m` or `30d`, and returns milliseconds from `minMs` to `maxMs`. `0` needs no unit. Throws
 * outside of these bounds. Pass `maxMs` for timers: Node fires a timer of more than 24 days immediately.
 */
export function parseDurationOption(
  option: string,
  text: string,
  { minMs, maxMs }: { minMs: number; maxMs?: number | undefined },
): number {
  try {
    // Parses a duration of days, such as `30d`, which only options accept. Kubernetes durations have no days, so the duration parser of
    // manifests rejects them.
    const [, days] = /^(\d{1,6})d$/.exec(text) ?? [];
    const ms = days === undefined ? parseDuration(text === "0" ? "0s" : text) : Number(days) * DAY_MS;
    if (ms >= minMs && ms <= (maxMs ?? Number.POSITIVE_INFINITY)) return ms;
  } catch {
    // Falls through: the invalid value is reported below.
  }
  const range =
    maxMs === undefined ? `of at least ${minMs} ms` : `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  throw invalidValue(option, text, `a duration ${range}, such as 60s, 1h30m or 30d`);
}

/** Parses a JSON object. The error message does not repeat the text, which may be private. */
export function parseJsonObject(option: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Falls through: the invalid value is reported below.
  }
  throw new UsageError(`invalid value for --${option}: must be a JSON object such as '{"plan":"pro"}'`);
}

/** Parses a value that must be one of the words. */
export function parseChoice<const Word extends string>(option: string, text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text);
  if (found !== undefined) return found;
  throw invalidValue(option, text, words.join(" or "));
}

const MIB = 1024 * 1024;
/** Bounds of an option in MiB, up to one tebibyte. */
export const MIB_BOUNDS = { min: 1, max: MIB };

/** Parses an option in MiB and returns bytes. */
export const parseMib = (option: string, text: string): number => parseInteger(option, text, MIB_BOUNDS) * MIB;

/** Bounds of a retention, up to 100 years; 0 means unlimited. */
export const RETENTION_BOUNDS = { minMs: 0, maxMs: 36_500 * DAY_MS };

/** Parses a duration of whole days and returns the number of days. */
export function parseRetentionDays(option: string, text: string): number {
  const ms = parseDurationOption(option, text, RETENTION_BOUNDS);
  if (ms % DAY_MS !== 0) throw invalidValue(option, text, "a duration of whole days, such as 90d");
  return ms / DAY_MS;
}

/** Parses `--audit-retention` and `--deleted-retention` and returns days. */
export function parseRetention(options: { readonly "audit-retention": string; readonly "deleted-retention": string }): {
  audit: number;
  deleted: number;
} {
  const days = (name: keyof typeof options): number => parseRetentionDays(name, options[name]);
  return { audit: days("audit-retention"), deleted: days("deleted-retention") };
}

/** Maximum number of rows in a printed list. */
const LIST_MAX = 10_000;

/** Parses the `--limit` of a list. */
export const parseLimit = (text: string): number => parseInteger("limit", text, { min: 1, max: LIST_MAX });

/** Parses text of limited length without control characters or lone surrogates. */
export function parseName(option: string, text: string, { lengthMax }: { lengthMax: number }): string {
  const isPlain = text.trim() !== "" && text.length <= lengthMax && text.isWellFormed() && !/\p{Cc}/u.test(text);
  if (isPlain) return text;
  throw new UsageError(
    `invalid value for --${option}: must be 1 to ${lengthMax} characters without control characters`,
  );
}

/** Parses `on` or `off`. */
export function parseSwitch(option: string, text: string): boolean {
  if (text !== "on" && text !== "off") throw invalidValue(option, text, "on or off");
  return text === "on";
}

/** Parses the options for v1 of the API. */
export function parseV1(options: {
  readonly "api-v1": string;
  readonly "api-v1-sunset": string | undefined;
  readonly "api-v1-successor": string | undefined;
}): { isServed: boolean; sunsetMs: number | undefined; apiUrl: string | undefined } {
  const { "api-v1": served, "api-v1-sunset": sunset, "api-v1-successor": successor } = options;
  return {
    isServed: parseSwitch("api-v1", served),
    sunsetMs:
      sunset === undefined ? undefined : parseInstant("api-v1-sunset", sunset, { nowMs: Date.now(), spans: "ahead" }),
    apiUrl: successor === undefined ? undefined : parseBaseUrl("api-v1-successor", successor),
  };
}

const DATE = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
const SPAN = /^(\d{1,6})([smhd])$/;
const SPAN_UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS };

/**
 * Parses a time and returns Unix ms. Accepts a date (midnight UTC), an ISO 8601 time with an offset, or a span such as `90m` or `30d`,
 * which counts back or forward from `nowMs`, depending on `spans`.
 */
export function parseInstant(
  option: string,
  text: string,
  { nowMs, spans, or }: { nowMs: number; spans: "ahead" | "back"; or?: string },
): number {
  const [, count, unit = ""] = SPAN.exec(text) ?? [];
  const spanMs = Number(count) * (SPAN_UNIT_MS[unit] ?? Number.NaN);
  const ms = Number.isNaN(spanMs) ? parseIso(text) : nowMs + (spans === "ahead" ? spanMs : -spanMs);
  if (ms >= 0 && ms <= EXPIRES_MAX_MS) return ms;
  const word = or === undefined ? "" : `, or ${or}`;
  throw invalidValue(option, text, `a time such as 2026-12-31, 2026-12-31T18:00:00Z or 30d${word}`);
}

/** Like `parseInstant`, but rejects a time that is not after `nowMs`. Today's date is rejected, because midnight UTC is in the past. */
export function parseFuture(option: string, text: string, { nowMs, or }: { nowMs: number; or?: string }): number {
  const ms = parseInstant(option, text, { nowMs, spans: "ahead", ...(or === undefined ? {} : { or }) });
  if (ms > nowMs) return ms;
  const word = or === undefined ? "" : `, or ${or}`;
  throw invalidValue(option, text, `in the future, such as 30d${word}`);
}

function parseIso(text: string): number {
  const [, date = ""] = DATE.exec(text) ?? [];
  const midnight = new Date(`${date}T00:00:00Z`);
  // Rejects a day that does not exist: `Date.parse` reads 30 February as 2 March.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== date) return Number.NaN;
  return Date.parse(text);
}

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/**
 * Parses the public URL of the dashboard: an origin without a path, because the session cookie applies to the entire host. The URL must use
 * https except for loopback addresses, because browsers reject the cookie elsewhere.
 */
export function parseDashboardUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw invalidValue(option, text, "a URL such as https://postern.example.com");
  }
  if (url.protocol === "http:" && !LOOPBACK.has(url.hostname)) {
    throw invalidValue(option, text, "an https URL, because plain http exposes the session cookie");
  }
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw invalidValue(option, text, "a URL without a path, because the dashboard is at /dashboard/ of its own host");
  }
  return url.origin;
}

/**
 * Parses the issuer URL of an OpenID provider and returns it unchanged, because a trailing slash matters. The URL must use https, except
 * for a provider on this machine.
 */
export function parseProviderUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw invalidValue(option, text, "a URL such as https://id.example.com");
  }
  if (url.protocol === "http:" && !LOOPBACK.has(url.hostname)) {
    throw invalidValue(option, text, "an https URL, because plain http exposes sign-ins");
  }
  return text;
}

/** Formats a count with its noun: `1 key` or `2 keys`. */
export const counted = (count: number, resource: string): string => `${count} ${resource}${count === 1 ? "" : "s"}`;
