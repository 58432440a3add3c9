import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { linesOf } from "../http/header-lines.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";
import { ownText, rememberName } from "../http/known-names.ts";

/*
 * The part of an app's response head that a client gets, for requests and upgrades. The app may send any response. What cannot be
 * written as HTTP/1.1 is corrected where that loses nothing, and refused otherwise. Apps send few different names, so the meaning of
 * each is looked up and not computed.
 */

export interface ReceivedHead {
  readonly status: number;
  readonly reason: string | undefined;
  /** Names and values alternating, as they came. */
  readonly headers: readonly string[];
}

/** Headers that the gate adds to those of the app. */
export interface Additions {
  readonly requestId: string | undefined;
  readonly shown: ShownLimit | undefined;
  /** `hash` is that of the key that the request needed. */
  readonly admission: { readonly hash: string | undefined } | undefined;
}

/**
 * RFC 9111, 3.5: what lets a shared cache store the response to a request with `Authorization`, or keeps it from doing so. Caches know
 * no other header as a credential, so without one of these a response to a request with a key is marked private.
 */
const SAYS_WHO_MAY_STORE = /(?:^|[,\s])(?:public|private|no-store|s-maxage|must-revalidate)(?:$|[,;=\s])/i;

export type PassableHead =
  | {
      readonly kind: "passable";
      /** undefined: the standard phrase. */
      readonly reason: string | undefined;
      /** Whole lines, without those that say how the response ends, but for Content-Length. */
      readonly lines: string;
      /** By Content-Length. */
      readonly length: number | undefined;
      readonly isDated: boolean;
      /** Fields that `Connection` removed; they are removed from the trailers too. */
      readonly named: ReadonlySet<string> | undefined;
      /** The trailers that were announced. */
      readonly trailer: string | undefined;
    }
  | { readonly kind: "unusable"; readonly why: string };

const PASS = 0;
const DROP = 1;
const LENGTH = 2;
const CODING = 3;
const CONNECTION = 4;
const LIMIT = 5;
const REQUEST_ID = 6;
const DATE = 7;
const TRAILER = 8;
const CACHE_CONTROL = 9;

const SPECIAL: ReadonlyMap<string, number> = new Map([
  ...[...HOP_BY_HOP].map((name) => [name, DROP] as const),
  ["content-length", LENGTH],
  ["transfer-encoding", CODING],
  ["connection", CONNECTION],
  ["cache-control", CACHE_CONTROL],
  ["ratelimit-limit", LIMIT],
  ["ratelimit-remaining", LIMIT],
  ["ratelimit-reset", LIMIT],
  ["x-request-id", REQUEST_ID],
  ["date", DATE],
  ["trailer", TRAILER],
]);

interface KnownName {
  readonly lower: string;
  readonly meaning: number;
}

const known = new Map<string, KnownName>();

function lookUp(name: string): KnownName {
  const lower = ownText(name).toLowerCase();
  const found = { lower, meaning: SPECIAL.get(lower) ?? PASS };
  rememberName(known, name, found);
  return found;
}

const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;

/** Returns the head of a final response for the client, whose protocol can carry `statusMax`; with `isSwitching`, that of a 101, which ends HTTP on the connection. */
export function passableHead(
  { status, reason, headers }: ReceivedHead,
  { requestId, shown, admission }: Additions,
  { isSwitching = false, statusMax = STATUS_MAX } = {},
): PassableHead {
  if (isSwitching ? status !== SWITCHING_PROTOCOLS : !isFinalStatus(status, statusMax)) {
    return { kind: "unusable", why: `its status is ${status}` };
  }
  let head = collect(status, headers, shown !== undefined, undefined);
  const named = namedInConnection(head.connection);
  if (named !== undefined) head = collect(status, headers, shown !== undefined, named);
  // A transfer coding concerns one connection only. A client that did not ask for one could not decode it, and the gate does not.
  if (head.coding !== undefined && head.coding.trim().toLowerCase() !== "chunked") {
    return { kind: "unusable", why: "its transfer coding is another than `chunked`" };
  }
  let { lines } = head;
  if (requestId !== undefined && !head.hasRequestId) lines += `x-request-id: ${requestId}\r\n`;
  if (shown !== undefined) lines += limitLines(shown);
  if (!head.saysWhoMayStore && admission?.hash !== undefined && !isSwitching) lines += "cache-control: private\r\n";
  const { length, isDated, trailer } = head;
  return { kind: "passable", reason: writableReason(reason), lines, length, isDated, named, trailer };
}

interface Collected {
  readonly lines: string;
  readonly length: number | undefined;
  readonly coding: string | undefined;
  readonly connection: string | undefined;
  readonly trailer: string | undefined;
  readonly isDated: boolean;
  readonly hasRequestId: boolean;
  readonly saysWhoMayStore: boolean;
}

/** Makes the lines of the fields that are passed on, without those of `named`. */
function collect(
  status: number,
  headers: readonly string[],
  hasLimit: boolean,
  named: ReadonlySet<string> | undefined,
): Collected {
  let lines = "";
  let length: number | undefined;
  let coding: string | undefined;
  let connection: string | undefined;
  let trailer: string | undefined;
  let isDated = false;
  let hasRequestId = false;
  let saysWhoMayStore = false;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    const { lower, meaning } = known.get(name) ?? lookUp(name);
    // A coding that `Connection` names is one all the same: what it says of the body must not be lost.
    if (meaning !== CODING && named?.has(lower)) continue;
    if (meaning === PASS) lines += `${lower}: ${value}\r\n`;
    else if (meaning === LENGTH) {
      length = Number(value);
      // RFC 9110, 8.6: a 204 has no content, and no Content-Length.
      if (status !== NO_CONTENT) lines += `content-length: ${value}\r\n`;
    } else if (meaning === CODING) coding = coding === undefined ? value : `${coding},${value}`;
    else if (meaning === CONNECTION) connection = connection === undefined ? value : `${connection},${value}`;
    else if (meaning === TRAILER) trailer = trailer === undefined ? value : `${trailer}, ${value}`;
    else if (meaning === LIMIT && hasLimit) continue;
    else if (meaning !== DROP) {
      if (meaning === DATE) isDated = true;
      else if (meaning === REQUEST_ID) hasRequestId = true;
      else if (meaning === CACHE_CONTROL) saysWhoMayStore ||= SAYS_WHO_MAY_STORE.test(value);
      lines += `${lower}: ${value}\r\n`;
    }
  }
  return { lines, length, coding, connection, trailer, isDated, hasRequestId, saysWhoMayStore };
}

function limitLines(shown: ShownLimit): string {
  const headers: string[] = [];
  pushLimitHeaders(headers, shown);
  return linesOf(headers);
}

/** Returns the lines of an informational response for the client. */
export function interimLines(headers: readonly string[]): string {
  let connection: string | undefined;
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at]?.toLowerCase() === "connection") connection = `${connection ?? ""},${headers[at + 1]}`;
  }
  const named = namedInConnection(connection);
  let lines = "";
  for (let at = 0; at < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase();
    if (HOP_BY_HOP.has(name) || named?.has(name) || name === "content-length") continue;
    lines += `${name}: ${headers[at + 1]}\r\n`;
  }
  return lines;
}

/**
 * RFC 9110, 6.5.1: fields that say how a message is framed, read, kept, authorized or answered to are no trailers. A client that adds
 * trailers to its headers would act on them too late, or twice. Those that the gate sets are the gate's.
 */
const NEVER_TRAILERS: ReadonlySet<string> = new Set([
  "age",
  "authorization",
  "cache-control",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "date",
  "expires",
  "host",
  "location",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "retry-after",
  "set-cookie",
  "vary",
  "www-authenticate",
  "x-request-id",
]);

/** Returns the trailers of a response that a client gets, as lines. */
export function passableTrailers(trailers: readonly string[], named: ReadonlySet<string> | undefined): string {
  let lines = "";
  for (let at = 0; at < trailers.length; at += 2) {
    const name = (trailers[at] as string).toLowerCase();
    if (HOP_BY_HOP.has(name) || NEVER_TRAILERS.has(name) || named?.has(name)) continue;
    lines += `${name}: ${trailers[at + 1]}\r\n`;
  }
  return lines;
}

/** Bytes beyond ASCII are allowed too (RFC 9112, 4), but client libraries decode them differently. */
const WRITABLE = /^[\t\x20-\x7e]+$/;

/**
 * Returns the reason phrase if it can be written; undefined where the standard one is written instead. Phrases have no meaning
 * (RFC 9110, 15.1), so a response is not refused because of one.
 */
const writableReason = (reason: string | undefined): string | undefined =>
  reason !== undefined && WRITABLE.test(reason) ? reason : undefined;

const STATUS_MAX = 999;

/** Three digits from 200 on: below 200 a response is not final. Values above 599 are left to app and client, where the client's protocol carries them. */
const isFinalStatus = (status: number, max: number): boolean => status >= 200 && status <= max;
