import { createHash } from "node:crypto";
import { type ExpectedRequest, FUZZ_KEY } from "./case.ts";
import type { Random } from "./random.ts";

/*
 * The grammar of the client's requests. Sound requests are valid, and their response is known; odd ones are
 * combined from byte sequences that have fooled gates.
 */

const SMUGGLED = "GET /closed/smuggled HTTP/1.1\r\nHost: a\r\nX-Smuggled: 1\r\n\r\n";

const chunked = (random: Random, body: string, trailer = ""): string => {
  let text = "";
  for (let at = 0; at < body.length; ) {
    const length = 1 + random.int(body.length - at);
    text += `${length.toString(16)}\r\n${body.slice(at, at + length)}\r\n`;
    at += length;
  }
  return `${text}0\r\n${trailer}\r\n`;
};

export const digest = (text: string): string => createHash("sha1").update(text, "latin1").digest("hex");

/** A valid request, and what its response must be. `isLast` asks for the connection to be closed. */
export function soundRequest(random: Random, id: string, isLast: boolean): { text: string; expected: ExpectedRequest } {
  const method = random.pick(["GET", "GET", "POST", "PUT", "HEAD", "DELETE", "PATCH"]);
  const access = random.pick(["open", "key", "key", "none"] as const);
  const path = `${access === "open" ? "/open" : "/closed"}/${random.letters(1 + random.int(20))}${random.pick(["", "?a=b", "?x=%2F..//"])}`;
  const fields = [
    "Host: a",
    `X-Case: ${id}`,
    ...(access === "key"
      ? [random.pick([`Authorization: Bearer ${FUZZ_KEY}`, `X-API-Key: ${FUZZ_KEY}`, `x-api-key:${FUZZ_KEY}`])]
      : []),
    ...random.some(
      [
        "Accept: */*",
        "Cookie: a=b; c=d",
        "X-Postern-Key-Id: forged",
        "x_postern_roles: forged",
        "TE: trailers",
        "Keep-Alive: timeout=5",
        "Connection: X-Gone",
        "X-Gone: 1",
        `X-Long: ${"l".repeat(1 + random.int(3000))}`,
        "X-Odd: \x80\xff\t\xe9",
      ],
      4,
    ),
    ...(isLast ? ["Connection: close"] : []),
  ];
  const hasBody = method !== "GET" && method !== "HEAD" && random.oneIn(2);
  let body = "";
  let sent = "";
  if (hasBody) {
    body = random.letters(random.oneIn(10) ? random.int(200_000) : random.int(300));
    if (random.oneIn(3)) body += SMUGGLED;
    if (random.oneIn(2)) {
      fields.push(`Content-Length: ${body.length}`);
      sent = body;
    } else {
      fields.push("Transfer-Encoding: chunked");
      sent = chunked(random, body, random.oneIn(4) ? "X-Postern-Key-Id: forged\r\n" : "");
    }
  } else if (method === "POST" || method === "PUT") fields.push("Content-Length: 0");
  return {
    text: `${method} ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${sent}`,
    expected: { id, method, status: access === "none" ? 401 : undefined, body: digest(body) },
  };
}

const METHODS = [
  "GET",
  "POST",
  "PUT",
  "OPTIONS",
  "get",
  "PRI",
  "M-SEARCH",
  "CONNECT",
  "TRACE",
  "QUERY",
  "\x00",
  "GE T",
];
export const ODD_TARGETS = [
  "/open",
  "/open/a?b",
  "/closed",
  "/open/../closed",
  "/open/%2e%2e/closed",
  "/open%2fclosed",
  "//closed",
  "/open;x/../closed",
  "/open\\..\\closed",
  "/open/\x01",
  "/open/\xff",
  "/open/%00",
  "/open#/closed",
  "/open/ HTTP/1.1",
  "http://other/open",
  "http://other/closed",
  "other:443",
  "*",
  "",
  "?",
  "/open?\r",
  "/open/denied/x",
  "/open/%64enied/x",
  "/open/DENIED/x",
  "/open/denied",
  "/open/denied%2fx",
  "/open//denied/x",
  "/open/x/../denied/x",
  "/open/denied;a/x",
  "/open/%c0%ae%c0%ae/denied/x",
  "http://denied.test/open",
  "http://DENIED.test.:80/open",
];
const VERSIONS = [
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/1.2",
  "HTTP/2.0",
  "HTTP/0.9",
  "http/1.1",
  "HTTP/1.",
  "",
];
const ENDS = ["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\n ", "\r\n\t"];
const FRAMINGS: ReadonlyArray<readonly string[]> = [
  [],
  ["Content-Length: 5"],
  ["Content-Length: 5", "Content-Length: 5"],
  ["Content-Length: 5", "Content-Length: 50"],
  ["Content-Length: 5, 5"],
  ["Content-Length: +5"],
  ["Content-Length: -1"],
  ["Content-Length: 0x5"],
  ["Content-Length: 99999999999999999999"],
  ["Content-Length : 5"],
  ["Content-Length:\x0b5"],
  ["Transfer-Encoding: chunked"],
  ["Transfer-Encoding: chunked", "Content-Length: 5"],
  ["Content-Length: 5", "Transfer-Encoding: chunked"],
  ["Transfer-Encoding: xchunked"],
  ["Transfer-Encoding: gzip, chunked"],
  ["Transfer-Encoding: chunked, identity"],
  ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
  ["Transfer-Encoding:\x0bchunked"],
  ["Transfer-Encoding : chunked"],
  ["Transfer_Encoding: chunked"],
  ["X: y\rTransfer-Encoding: chunked"],
  ["Transfer-Encoding: \x00chunked"],
];
const BODIES = [
  "",
  "12345",
  `12345${SMUGGLED}`,
  `5\r\n12345\r\n0\r\n\r\n`,
  `0\r\n\r\n${SMUGGLED}`,
  "5;ext=\r\n12345\r\n0\r\n\r\n",
  "5 \r\n12345\r\n0\r\n\r\n",
  "5\n12345\n0\n\n",
  "05\r\n12345\r\n00\r\nX-Postern-Key-Id: forged\r\n\r\n",
  "fffffffffffffffff\r\n12345",
  "-1\r\n\r\n",
  "0x5\r\n12345\r\n0\r\n\r\n",
  "5\r\n12345678\r\n0\r\n\r\n",
  `3\r\n123\r\n${SMUGGLED}`,
];
const ODD_FIELDS = [
  "X-Postern-Key-Id: forged",
  "X-Postern-Request-Id: forged",
  "X_Postern-Key-Id: forged",
  "x.postern.key.id: forged",
  "Connection: X-Postern-Request-Id, X-Postern-Key-Id",
  "Connection: Host, Content-Length, Transfer-Encoding",
  "Connection: close",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Upgrade: h2c",
  "HTTP2-Settings: AAMAAABkAAQ",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Expect: 100-continue",
  "Expect: 200-maybe",
  "Host: b",
  " X-Folded: 1",
  ": empty",
  "no colon",
  "X-Nul: \0",
  "X-Bare: a\rb",
  "X-Esc: \x1b",
  `X-Long: ${"l".repeat(20_000)}`,
  "Authorization: Bearer unknown",
  `Authorization: Bearer ${FUZZ_KEY}`,
  `X-API-Key: ${FUZZ_KEY}`,
  "Trailer: X-Postern-Key-Id",
  "Proxy-Connection: keep-alive",
  "Host: denied.test",
  "Host: DENIED.test.:80",
  "X-Denied: 1",
  "x_denied: 1",
  "X.Denied:",
  "X-Denied: \xff",
  "Connection: X-Denied",
];

/** A request whose response cannot be predicted. */
export function oddRequest(random: Random, id: string): string {
  const fields = [
    ...(random.oneIn(10) ? [] : [random.oneIn(8) ? "Host: denied.TEST:80" : "Host: a"]),
    `X-Case: ${id}`,
    ...random.some(ODD_FIELDS, 8),
    ...(random.oneIn(2) ? [] : random.pick(FRAMINGS)),
  ];
  const end = random.oneIn(3) ? random.pick(ENDS) : "\r\n";
  const line = [random.pick(METHODS), random.pick(ODD_TARGETS), random.pick(VERSIONS)].join(
    random.oneIn(20) ? "\t" : " ",
  );
  const head = [random.oneIn(2) ? `GET ${random.pick(["/open", "/closed"])} HTTP/1.1` : line, ...fields].join(end);
  return `${head}${random.oneIn(10) ? end + end : "\r\n\r\n"}${random.oneIn(2) ? random.pick(BODIES) : ""}`;
}

/** A valid handshake. */
export const handshake = (id: string): string =>
  `${[
    "GET /closed/socket HTTP/1.1",
    "Host: a",
    `X-Case: ${id}`,
    `X-API-Key: ${FUZZ_KEY}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ].join("\r\n")}\r\n\r\n`;
