import { EXPIRES_MAX_MS } from "../core/keys/expires-max.ts";
import { parseDuration } from "../core/manifests/duration.ts";
import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import { type IpRange, parseIpRange } from "../core/verification/ip-address.ts";
import { UsageError } from "./command.ts";

const DAY_MS = 86_400_000;

/* Parsers of option values. Each throws a `UsageError` that says what was expected. */

/** A port, 0 meaning any free one. */
export function parsePort(option: string, text: string): number {
  const port = Number(text);
  if (text === "" || !Number.isInteger(port) || port < 0 || port > 65535) {
    throw new UsageError(`--${option} wants a port from 0 to 65535, got "${text}"`);
  }
  return port;
}

/** `PORT`, or `HOST:PORT` with an IPv6 address in brackets; `host` is that of a port alone. */
export function parseListen(option: string, text: string, host: string): { host: string; port: number } {
  const [, bracketed, named, port] = /^(?:\[([\da-fA-F:.]+)\]:|([^:[\]\s]+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === undefined) throw new UsageError(`--${option} wants a port or HOST:PORT, got "${text}"`);
  return { host: bracketed ?? named ?? host, port: parsePort(option, port) };
}

/** Addresses and blocks such as `10.0.0.0/8`, separated by commas. */
export function parseBlocks(option: string, text: string): IpRange[] {
  return text.split(",").map((part) => {
    const range = parseIpRange(part.trim());
    if (range === undefined) {
      throw new UsageError(
        `--${option} wants addresses or blocks such as 10.0.0.0/8, separated by commas, got "${part}"`,
      );
    }
    return range;
  });
}

/** The origin of an http or https address. */
export function parseHttpUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(`--${option} wants an address such as http://127.0.0.1:3000, got "${text}"`);
  }
  return url.origin;
}

/** An http or https address with its path, without a slash at the end. */
export function parseBaseUrl(option: string, text: string): string {
  const origin = parseHttpUrl(option, text);
  return `${origin}${new URL(text).pathname.replace(/\/+$/, "")}`;
}

/** A whole decimal number from `min` to `max`. `or` names a word that the caller accepts too, for the message. */
export function parseInteger(option: string, text: string, range: { min: number; max: number; or?: string }): number {
  const { min, max, or } = range;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  const word = or === undefined ? "" : `, or ${or}`;
  throw new UsageError(`--${option} wants a whole number from ${min} to ${max}${word}, got "${text}"`);
}

/**
 * A duration such as `500ms`, `60s`, `1h30m` or `30d`, of at least `minMs`, in milliseconds. What a timer waits for needs a `maxMs`: a timer
 * of more than 24 days ends at once.
 */
export function parseDurationOption(
  option: string,
  text: string,
  { minMs, maxMs }: { minMs: number; maxMs?: number | undefined },
): number {
  try {
    // Manifests have no days, because Kubernetes does not know them.
    const [, days] = /^(\d{1,6})d$/.exec(text) ?? [];
    const ms = days === undefined ? parseDuration(text) : Number(days) * DAY_MS;
    if (ms >= minMs && ms <= (maxMs ?? Number.POSITIVE_INFINITY)) return ms;
  } catch {
    // Refused below, as one that is too short.
  }
  const range = maxMs === undefined ? `at least ${minMs} ms` : `${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  throw new UsageError(`--${option} wants a duration such as 60s, 1h30m or 30d, ${range}, got "${text}"`);
}

/** A JSON object. The parser's own error shows a part of the text, which may be private, so it is not told. */
export function parseJsonObject(option: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Refused below.
  }
  throw new UsageError(`--${option} wants a JSON object such as '{"plan":"pro"}'`);
}

/** One of the words. */
export function parseChoice<const Word extends string>(option: string, text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text);
  if (found !== undefined) return found;
  throw new UsageError(`--${option} wants ${words.join(" or ")}, got "${text}"`);
}

const MIB = 1024 * 1024;
/** To a terabyte. */
export const MIB_BOUNDS = { min: 1, max: MIB };

/** Reads an option in MiB and returns bytes. */
export const parseMib = (option: string, text: string): number => parseInteger(option, text, MIB_BOUNDS) * MIB;

/** To a hundred years. */
export const DAYS_BOUNDS = { min: 0, max: 36_500 };

/** `--audit-retention-days` and `--deleted-retention-days`. */
export function parseRetention(options: {
  readonly "audit-retention-days": string;
  readonly "deleted-retention-days": string;
}): { audit: number; deleted: number } {
  const days = (name: keyof typeof options) => parseInteger(name, options[name], DAYS_BOUNDS);
  return { audit: days("audit-retention-days"), deleted: days("deleted-retention-days") };
}

/** The most that a list may show. */
const LIST_MAX = 10_000;

/** `--limit` of a list. */
export const parseLimit = (text: string): number => parseInteger("limit", text, { min: 1, max: LIST_MAX });

/** A text of bounded length without characters that cannot be stored or shown. */
export function parseName(option: string, text: string, { lengthMax }: { lengthMax: number }): string {
  const isPlain = text.trim() !== "" && text.length <= lengthMax && text.isWellFormed() && !/\p{Cc}/u.test(text);
  if (isPlain) return text;
  throw new UsageError(`--${option} wants 1 to ${lengthMax} characters, none of them a control character`);
}

/** `on` or `off`. */
export function parseSwitch(option: string, text: string): boolean {
  if (text !== "on" && text !== "off") throw new UsageError(`--${option} wants on or off, got "${text}"`);
  return text === "on";
}

/** Reads the options about the first generation of the API. */
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
 * Reads an instant and returns Unix ms: a date (midnight UTC), an instant in ISO 8601 with its offset, or a span such as `90m` or
 * `30d` from now, ahead or back as `spans` says.
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
  throw new UsageError(
    `--${option} wants a time such as 2026-12-31, 2026-12-31T18:00:00Z or 30d${word}, got "${text}"`,
  );
}

/** The same for what has to be later than now. A date of today is midnight UTC, which has passed. */
export function parseFuture(option: string, text: string, { nowMs, or }: { nowMs: number; or?: string }): number {
  const ms = parseInstant(option, text, { nowMs, spans: "ahead", ...(or === undefined ? {} : { or }) });
  if (ms > nowMs) return ms;
  const word = or === undefined ? "" : `, or ${or}`;
  throw new UsageError(`--${option} ${text} is in the past: give a later time, such as 30d${word}`);
}

function parseIso(text: string): number {
  const [, date = ""] = DATE.exec(text) ?? [];
  const midnight = new Date(`${date}T00:00:00Z`);
  // Date.parse reads 30 February as 2 March.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== date) return Number.NaN;
  return Date.parse(text);
}

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/**
 * Where browsers reach the dashboard: an origin, without a path, because its cookie is for a whole host. https, except on this machine, because
 * browsers keep its cookie nowhere else.
 */
export function parseDashboardUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--${option} wants a URL such as https://postern.example.com, got "${text}"`);
  }
  if (url.protocol === "http:" && !LOOPBACK.has(url.hostname)) {
    throw new UsageError(`--${option} wants https: over plain http anyone on the way could take a session`);
  }
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new UsageError(`--${option} wants no path: the dashboard is at /dashboard/ of a host of its own`);
  }
  return url.origin;
}

/** Of an OpenID provider, exactly as it names itself: a slash at the end matters. https, except on this machine. */
export function parseProviderUrl(option: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new UsageError(`--${option} wants a URL such as https://id.example.com, got "${text}"`);
  }
  if (url.protocol === "http:" && !LOOPBACK.has(url.hostname)) {
    throw new UsageError(`--${option} wants https: over plain http anyone on the way could say who signs in`);
  }
  return text;
}

/** `1 key`, `2 keys`. */
export const counted = (count: number, resource: string): string => `${count} ${resource}${count === 1 ? "" : "s"}`;
