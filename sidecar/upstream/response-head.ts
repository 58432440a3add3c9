import { HOP_BY_HOP, namedInConnection } from "../../core/policies/hop-by-hop.ts";
import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { linesOf } from "../http/header-lines.ts";
import { ownText, rememberName } from "../http/known-names.ts";

/*
 * Converts the head of an app's response to the head for the client, for requests and upgrades. An app can send anything: a head that is
 * invalid in HTTP/1.1 is corrected if this loses no information, and rejected otherwise. The meaning of each header name is cached, because
 * apps send few different names.
 */

export interface ReceivedHead {
  readonly status: number;
  readonly reason: string | undefined;
  /** Alternating names and values of the headers, as received. */
  readonly headers: readonly string[];
}

/** Headers that the gate adds to those of the app. */
export interface Additions {
  readonly requestId: string | undefined;
  readonly shown: ShownLimit | undefined;
  /** Admission of the request. `hash` is the hash of the key; `undefined` if no key was required. */
  readonly admission: { readonly hash: string | undefined } | undefined;
}

/**
 * Directives that allow or forbid a shared cache to store the response to a request with `Authorization` (RFC 9111, 3.5). Caches treat no
 * other request header as a credential, so the gate marks responses to requests with a key as private, unless they have one of these
 * directives.
 */
const SAYS_WHO_MAY_STORE = /(?:^|[,\s])(?:public|private|no-store|s-maxage|must-revalidate)(?:$|[,;=\s])/i;

export type PassableHead =
  | {
      readonly kind: "passable";
      /** Reason phrase; `undefined` selects the standard phrase of the status. */
      readonly reason: string | undefined;
      /** Header lines without framing headers, except Content-Length. */
      readonly lines: string;
      /** Value of Content-Length; `undefined` if absent. */
      readonly length: number | undefined;
      readonly isDated: boolean;
      /** Fields listed in `Connection`. They are removed from the headers and the trailers. */
      readonly named: ReadonlySet<string> | undefined;
      /** Value of the `Trailer` header, which announces trailers. */
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
  ["ratelimit-policy", LIMIT],
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

/**
 * Returns the head of a final response for the client. `statusMax` is the highest status that the client's protocol supports. If
 * `isSwitching`, returns the head of a 101 response, after which the connection no longer carries HTTP.
 */
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
  // Rejects a transfer coding, which applies to one connection only. The gate cannot decode it, and neither can a client that did not
  // request it.
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

/** Returns the lines of the forwarded fields, except those in `named`. */
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
    // A transfer coding applies to the body even if `Connection` lists its header.
    if (meaning !== CODING && named?.has(lower)) continue;
    if (meaning === PASS) lines += `${lower}: ${value}\r\n`;
    else if (meaning === LENGTH) {
      length = Number(value);
      // A 204 response has neither content nor a Content-Length (RFC 9110, section 8.6).
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
 * Fields that are not allowed in trailers (RFC 9110, 6.5.1): those for framing, routing, caching, authorization and response control. A
 * client that merges trailers into the headers would apply these fields too late or twice. Headers that the gate sets are excluded too.
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

/** Returns the trailers of a response for the client, as header lines. */
export function passableTrailers(trailers: readonly string[], named: ReadonlySet<string> | undefined): string {
  let lines = "";
  for (let at = 0; at < trailers.length; at += 2) {
    const name = (trailers[at] as string).toLowerCase();
    if (HOP_BY_HOP.has(name) || NEVER_TRAILERS.has(name) || named?.has(name)) continue;
    lines += `${name}: ${trailers[at + 1]}\r\n`;
  }
  return lines;
}

/**
 * Characters that the gate forwards in a reason phrase. RFC 9112, 4, also allows bytes beyond ASCII, but client libraries decode them
 * differently.
 */
const WRITABLE = /^[\t\x20-\x7e]+$/;

/**
 * Returns the reason phrase if it can be written, otherwise `undefined` for the standard phrase. Reason phrases have no meaning (RFC 9110,
 * 15.1), so they never cause a rejection.
 */
const writableReason = (reason: string | undefined): string | undefined =>
  reason !== undefined && WRITABLE.test(reason) ? reason : undefined;

const STATUS_MAX = 999;

/**
 * Returns whether a status is final: a three-digit number from 200 on. Values above 599 are forwarded if the client's protocol supports
 * them.
 */
const isFinalStatus = (status: number, max: number): boolean => status >= 200 && status <= max;
