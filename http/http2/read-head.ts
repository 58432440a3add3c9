import { randomBytes } from "node:crypto";
import { METHODS } from "node:http";

/*
 * Converts the head of an HTTP/2 request to HTTP/1.1 form. nghttp2 has already rejected malformed heads (RFC 9113, 8.2 and 8.3): upper-case
 * names, connection-specific fields, `te` other than `trailers`, pseudo-header fields that are unknown, duplicate or late, and a
 * Content-Length that differs from the length of the DATA frames. This function rejects requests that HTTP/1.1 cannot express. An extended
 * CONNECT for a WebSocket (RFC 8441) becomes the equivalent GET with an upgrade, so that rules treat both in the same way.
 */

export interface Http2Head {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values of the headers, with `:authority` as `host` and all cookies in one `cookie`. */
  readonly headers: readonly string[];
  readonly isUpgrade: boolean;
  /** Generated `Sec-WebSocket-Key`; `undefined` if the request is not an upgrade or already has a key. */
  readonly madeKey: string | undefined;
}

/** The converted head, or the reason for its rejection. `reason` describes the format and quotes no input. */
export type ReadHead =
  | ({ readonly fault: undefined } & Http2Head)
  | { readonly fault: { readonly kind: "malformed" | "overflow"; readonly reason: string } };

/** Bytes counted per header in addition to its name and value, as for HTTP/1.1. */
const HEADER_BYTES = 4;
/**
 * Methods that the HTTP/1.1 parser accepts. If other spellings were accepted, a rule could interpret the method differently than the app.
 */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
/** Characters that are valid in the target of a request line. */
const TARGET = /^[\x21-\x7e\x80-\xff]+$/;
const AUTHORITY = /^[\x21-\x7e]+$/;

/** Converts a head. `fields` are alternating names and values, as received; `hasBody` means that the head did not end the stream. */
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
      // Several `cookie` fields are joined into one, in their order (RFC 9113, section 8.2.3).
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
  // A `host` that differs from `:authority` would be ambiguous (RFC 9113, section 8.3.1).
  if (hosts > 1 || (hosts === 1 && authority !== undefined && authority !== host))
    return refused("malformed", "`:authority` and `host` disagree");
  const named = authority ?? host;
  if (named === undefined || !AUTHORITY.test(named)) return refused("malformed", "`:authority` is missing or no host");
  headers.push("host", named);
  if (isUpgrade) {
    headers.push("connection", "upgrade", "upgrade", "websocket");
    // An HTTP/2 client need not send a WebSocket key, so the gate generates one. A key that a gateway forwards from an HTTP/1.1 client is
    // kept, because that client verifies the response.
    const madeKey = headers.includes(WEBSOCKET_KEY) ? undefined : randomBytes(16).toString("base64");
    if (madeKey !== undefined) headers.push(WEBSOCKET_KEY, madeKey);
    return { fault: undefined, method: "GET", target, headers, isUpgrade: true, madeKey };
  }
  // Without `transfer-encoding` or a length, an HTTP/1.1 request would have no body.
  if (hasBody && !hasLength) headers.push("transfer-encoding", "chunked");
  return { fault: undefined, method, target, headers, isUpgrade: false, madeKey: undefined };
}

const WEBSOCKET_KEY = "sec-websocket-key";
const COLON = 0x3a;

const refused = (kind: "malformed" | "overflow", reason: string): ReadHead => ({ fault: { kind, reason } });
