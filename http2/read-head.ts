import { randomBytes } from "node:crypto";
import { METHODS } from "node:http";

/*
 * The head of a request of HTTP/2, in the form of one of HTTP/1.1. nghttp2 has refused by then what RFC 9113 (8.2, 8.3) calls malformed:
 * names that are not in lower case, fields of the connection, `te` other than `trailers`, pseudo fields that are unknown, doubled or late, a
 * Content-Length that its DATA disagrees with. What it accepts and HTTP/1.1 could not say is refused here. An extended CONNECT for a WebSocket
 * (RFC 8441) becomes the GET that would ask for the upgrade, so that it is judged as one.
 */

export interface Http2Head {
  readonly method: string;
  readonly target: string;
  /** Names and values alternating: with `host` for `:authority`, and one `cookie`. */
  readonly headers: readonly string[];
  readonly isUpgrade: boolean;
  /** The `Sec-WebSocket-Key` that was made for an upgrade without one. */
  readonly madeKey: string | undefined;
}

/** `reason` describes the format and quotes nothing. */
export type ReadHead =
  | ({ readonly fault: undefined } & Http2Head)
  | { readonly fault: { readonly kind: "malformed" | "overflow"; readonly reason: string } };

/** What a header costs besides its name and value, as for HTTP/1.1. */
const HEADER_BYTES = 4;
/** The same methods that the parser of HTTP/1.1 knows. Another spelling of one could be another method for a rule than for the app. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
/** What a request line can carry. */
const TARGET = /^[\x21-\x7e\x80-\xff]+$/;
const AUTHORITY = /^[\x21-\x7e]+$/;

/** `fields` are names and values alternating, as they came. `hasBody`: the head did not end the stream. */
export function readHttp2Head(fields: readonly string[], hasBody: boolean, headBytesMax: number): ReadHead {
  let method = "";
  let target = "";
  let authority: string | undefined;
  let host: string | undefined;
  let hosts = 0;
  let hasLength = false;
  let cookieAt = -1;
  let protocol: string | undefined;
  let bytes = 0;
  const headers: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (name.charCodeAt(0) === COLON) {
      bytes += value.length;
      if (name === ":method") method = value;
      else if (name === ":path") target = value;
      else if (name === ":authority") authority = value;
      else if (name === ":protocol") protocol = value;
      continue;
    }
    bytes += name.length + value.length + HEADER_BYTES;
    if (name === "host") {
      host = value;
      hosts += 1;
    } else if (name === "cookie" && cookieAt !== -1) {
      // RFC 9113, 8.2.3: crumbs become one field, in their order.
      headers[cookieAt] += `; ${value}`;
    } else {
      if (name === "content-length") hasLength = true;
      else if (name === "cookie") cookieAt = headers.length + 1;
      headers.push(name, value);
    }
  }
  if (bytes > headBytesMax) return refused("overflow", "");
  if (!KNOWN_METHODS.has(method)) return refused("malformed", "the method is unknown");
  const isUpgrade = method === "CONNECT" && protocol?.toLowerCase() === "websocket";
  if (method === "CONNECT" && !isUpgrade) return refused("malformed", "the gate opens no tunnels");
  if (isUpgrade && !hasBody) return refused("malformed", "a WebSocket goes on after its head");
  if (!TARGET.test(target)) return refused("malformed", "`:path` is not a path");
  // RFC 9113, 8.3.1: both would be ambiguous.
  if (hosts > 1 || (hosts === 1 && authority !== undefined && authority !== host))
    return refused("malformed", "`:authority` and `host` disagree");
  const named = authority ?? host;
  if (named === undefined || !AUTHORITY.test(named)) return refused("malformed", "`:authority` is missing or no host");
  headers.push("host", named);
  if (isUpgrade) {
    headers.push("connection", "upgrade", "upgrade", "websocket");
    // HTTP/2 has no use for a key. Gateways pass on that of a client of HTTP/1.1, which then checks the answer to it.
    const madeKey = headers.includes(WEBSOCKET_KEY) ? undefined : randomBytes(16).toString("base64");
    if (madeKey !== undefined) headers.push(WEBSOCKET_KEY, madeKey);
    return { fault: undefined, method: "GET", target, headers, isUpgrade: true, madeKey };
  }
  // HTTP/1.1 would say so that a body of unknown length follows.
  if (hasBody && !hasLength) headers.push("transfer-encoding", "chunked");
  return { fault: undefined, method, target, headers, isUpgrade: false, madeKey: undefined };
}

const WEBSOCKET_KEY = "sec-websocket-key";
const COLON = 0x3a;

const refused = (kind: "malformed" | "overflow", reason: string): ReadHead => ({ fault: { kind, reason } });
