import { STATUS_CODES } from "node:http";
import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";

/*
 * What of the head of an app's answer a client gets to see, in answer to a request and to an upgrade alike. The app is free to
 * answer as it likes; what cannot be written as HTTP/1.1 is put right where that loses nothing, and refused where it would.
 */

export interface ReceivedHead {
  readonly status: number;
  readonly reason: string | undefined;
  /** By names in lower case. */
  readonly headers: Readonly<NodeJS.Dict<string | string[]>>;
}

/** What the gate says beside what the app says. */
export interface Additions {
  readonly requestId: string | undefined;
  readonly shown: ShownLimit | undefined;
}

export type PassableHead =
  | {
      readonly kind: "passable";
      /** undefined: the standard phrase. */
      readonly reason: string | undefined;
      /** Names and values by turns. */
      readonly headers: string[];
      /** Fields that `Connection` took away, and takes from the trailers too. */
      readonly named: ReadonlySet<string> | undefined;
    }
  | { readonly kind: "unusable"; readonly why: string };

const LIMIT_HEADERS: ReadonlySet<string> = new Set(["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]);
const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;

/** The head of a final answer as the client gets it; with `isSwitching`, the one of a 101, which ends HTTP on the connection. */
export function passableHead(
  { status, reason, headers }: ReceivedHead,
  { requestId, shown }: Additions,
  { isSwitching = false } = {},
): PassableHead {
  if (isSwitching ? status !== SWITCHING_PROTOCOLS : !isFinalStatus(status)) {
    return { kind: "unusable", why: `its status is ${status}` };
  }
  // Decoding is a matter between neighbours. A client that did not ask for a coding could not undo it, and the gate does not.
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
    // RFC 9110, 8.6: a 204 has no content, and says nothing of its length.
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

/** An informational answer as the client gets it, whole. */
export function interimText(status: number, headers: ReceivedHead["headers"]): string {
  const named = namedInConnection(headers.connection);
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (const [name, value = []] of Object.entries(headers)) {
    if (HOP_BY_HOP.has(name) || named?.has(name) || name === "content-length") continue;
    for (const one of [value].flat()) text += `${name}: ${one}\r\n`;
  }
  return `${text}\r\n`;
}

/** RFC 9110, 6.5.1: these say how a message is read, and are not believed when they come after it. */
const NEVER_TRAILERS: ReadonlySet<string> = new Set(["content-length", "content-type", "host", "set-cookie"]);

/** The trailers of an answer that a client gets to see. */
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

/** Bytes beyond ASCII are allowed too (RFC 9112, 4), but client libraries disagree about which characters they are. */
const WRITABLE = /^[\t\x20-\x7e]+$/;

/**
 * The reason phrase as it may be written; undefined where the standard one is to be written instead. Phrases have no meaning
 * (RFC 9110, 15.1), so that an answer is not refused for one that cannot be written.
 */
const writableReason = (reason: string | undefined): string | undefined =>
  reason !== undefined && WRITABLE.test(reason) ? reason : undefined;

/** Three digits, and neither below 200, where an answer is not final, nor 0. Those past 599 are left to app and client. */
const isFinalStatus = (status: number): boolean => status >= 200 && status <= 999;
