import { STATUS_CODES } from "node:http";
import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";

/*
 * The part of an app's response head that a client gets, for requests and upgrades. The app may send any response. What cannot be
 * written as HTTP/1.1 is corrected where that loses nothing, and refused otherwise.
 */

export interface ReceivedHead {
  readonly status: number;
  readonly reason: string | undefined;
  /** Names are in lower case. */
  readonly headers: Readonly<NodeJS.Dict<string | string[]>>;
}

/** Headers that the gate adds to those of the app. */
export interface Additions {
  readonly requestId: string | undefined;
  readonly shown: ShownLimit | undefined;
}

export type PassableHead =
  | {
      readonly kind: "passable";
      /** undefined: the standard phrase. */
      readonly reason: string | undefined;
      /** Names and values alternating. */
      readonly headers: string[];
      /** Fields that `Connection` removed; they are removed from the trailers too. */
      readonly named: ReadonlySet<string> | undefined;
    }
  | { readonly kind: "unusable"; readonly why: string };

const LIMIT_HEADERS: ReadonlySet<string> = new Set(["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]);
const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;

/** Returns the head of a final response for the client; with `isSwitching`, that of a 101, which ends HTTP on the connection. */
export function passableHead(
  { status, reason, headers }: ReceivedHead,
  { requestId, shown }: Additions,
  { isSwitching = false } = {},
): PassableHead {
  if (isSwitching ? status !== SWITCHING_PROTOCOLS : !isFinalStatus(status)) {
    return { kind: "unusable", why: `its status is ${status}` };
  }
  // A transfer coding concerns one connection only. A client that did not ask for one could not decode it, and the gate does not.
  const codings = headers["transfer-encoding"];
  if (codings !== undefined && [codings].flat().join().trim().toLowerCase() !== "chunked") {
    return { kind: "unusable", why: "its transfer coding is another than `chunked`" };
  }
  const named = namedInConnection(headers.connection);
  const out: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name)) continue;
    if (shown !== undefined && LIMIT_HEADERS.has(name)) continue;
    // RFC 9110, 8.6: a 204 has no content, and no Content-Length.
    if (status === NO_CONTENT && name === "content-length") continue;
    if (typeof value === "string") out.push(name, value);
    else for (const one of value) out.push(name, one);
  }
  if (requestId !== undefined && (headers["x-request-id"] === undefined || named?.has("x-request-id"))) {
    out.push("x-request-id", requestId);
  }
  if (shown !== undefined) pushLimitHeaders(out, shown);
  return { kind: "passable", reason: writableReason(reason), headers: out, named };
}

/** Returns a whole informational response for the client. */
export function interimText(status: number, headers: ReceivedHead["headers"]): string {
  const named = namedInConnection(headers.connection);
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (const [name, value = []] of Object.entries(headers)) {
    if (HOP_BY_HOP.has(name) || named?.has(name) || name === "content-length") continue;
    for (const one of [value].flat()) text += `${name}: ${one}\r\n`;
  }
  return `${text}\r\n`;
}

/** RFC 9110, 6.5.1: these fields say how to read a message, so they are removed from trailers. */
const NEVER_TRAILERS: ReadonlySet<string> = new Set(["content-length", "content-type", "host", "set-cookie"]);

/** Returns the trailers of a response that a client gets. */
export function passableTrailers(
  trailers: Readonly<NodeJS.Dict<string | string[]>>,
  named: ReadonlySet<string> | undefined,
): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(trailers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || NEVER_TRAILERS.has(name) || named?.has(name)) continue;
    out[name] = typeof value === "string" ? value : value.join(", ");
  }
  return out;
}

/** Bytes beyond ASCII are allowed too (RFC 9112, 4), but client libraries decode them differently. */
const WRITABLE = /^[\t\x20-\x7e]+$/;

/**
 * Returns the reason phrase if it can be written; undefined where the standard one is written instead. Phrases have no meaning
 * (RFC 9110, 15.1), so a response is not refused because of one.
 */
const writableReason = (reason: string | undefined): string | undefined =>
  reason !== undefined && WRITABLE.test(reason) ? reason : undefined;

/** Three digits from 200 on: below 200 a response is not final. Values above 599 are left to app and client. */
const isFinalStatus = (status: number): boolean => status >= 200 && status <= 999;
