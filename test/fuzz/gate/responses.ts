import type { ResponsePlan } from "./case.ts";
import { mutate, split } from "./mutate.ts";
import type { Random } from "./random.ts";

/* The grammar of the responses of the app on a bare socket. */

/** Bytes after a response, which must never be taken for the response to another request. */
const STRAY = "HTTP/1.1 200 OK\r\nX-Saw: stray\r\nContent-Length: 4\r\n\r\nevil";

const VERSIONS = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.9", "HTP/1.1", ""];
const STATUSES = [
  "200",
  "204",
  "304",
  "404",
  "500",
  "600",
  "999",
  "000",
  "001",
  "099",
  "100",
  "101",
  "102",
  "103",
  "199",
  "20",
  "2000",
  "abc",
  "-1",
];
const REASONS = ["OK", "", "n\x01o", "\x80\xff", "two words", "a\rb", "\0", "r".repeat(3000)];
const FIELDS = [
  "Set-Cookie: a=b",
  "Connection: close",
  "Connection: keep-alive, X-Gone",
  "X-Gone: 1",
  "Keep-Alive: timeout=1",
  "Keep-Alive: timeout=-1",
  "Proxy-Authenticate: Basic",
  "Upgrade: websocket",
  "Connection: Upgrade",
  "Content-Length: 5",
  "Content-Length: 6",
  "Content-Length: +5",
  "Content-Length: 99999999999999999999",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Trailer: X-T",
  "X-Nul: \0",
  "X-Bare: a\rb",
  "X-Esc: \x1b[0m",
  "X-High: \x80\xff",
  " folded",
  "no colon",
  ": empty",
  "__proto__: x",
  "constructor: y",
  `X-Long: ${"l".repeat(100_000)}`,
];
const BODIES = [
  "",
  "12345",
  "5\r\n12345\r\n0\r\n\r\n",
  "5\r\n12345\r\n0\r\nX-T: 1\r\nContent-Length: 7\r\n\r\n",
  "5\r\n12345\r\n0\r\nX-T: \x01\r\n__proto__: 1\r\n\r\n",
  "5;a=b\r\n12345\r\n0\r\n\r\n",
  "zz\r\n12345",
  "5\n12345\n0\n\n",
  "fffffffff\r\n12345",
];
const INTERIM = [
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n",
  "HTTP/1.1 102 Processing\r\n\r\n",
  "HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n",
];

const plan = (random: Random, text: string, rest: Omit<ResponsePlan, "pieces" | "after">): ResponsePlan => ({
  pieces: split(random, text),
  after: random.oneIn(4) ? "head" : "body",
  ...rest,
});

/** A valid response; some are cut off, some have bytes after them. */
function soundAnswer(random: Random, id: string): ResponsePlan {
  const status = random.pick([200, 200, 201, 404, 500]);
  const body = random.letters(random.oneIn(10) ? random.int(200_000) : random.int(300));
  const interim = random.oneIn(4) ? random.pick(INTERIM) : "";
  const start = `${interim}HTTP/1.1 ${status} Words\r\nX-Saw: ${id}\r\n`;
  const framing = random.pick(["length", "chunked", "close"] as const);
  if (framing === "close") {
    const text = `${start}Connection: close\r\n\r\n${body}`;
    const isReset = random.oneIn(3);
    return plan(random, text, { ending: isReset ? "reset" : "end", expect: isReset ? "cut" : "whole", status, body });
  }
  const ending = random.pick(["keep", "keep", "end"] as const);
  // An app that closes a connection without having announced it breaks off the next request on that connection.
  const fields = ending === "end" ? `${start}Connection: close\r\n` : start;
  let text = `${fields}Content-Length: ${body.length}\r\n\r\n${body}`;
  if (framing === "chunked") {
    const half = body.length >> 1;
    const chunks = [body.slice(0, half), body.slice(half)].filter((chunk) => chunk !== "");
    const coded = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
    text = `${fields}Transfer-Encoding: chunked\r\n\r\n${coded}0\r\n\r\n`;
  }
  if (body.length > 1 && random.oneIn(4)) {
    // Cut in the last half of the body, so that the client gets the head but not the end.
    const cutAt = text.length - (framing === "chunked" ? 5 : 0) - 1 - random.int(body.length >> 1);
    const brokenBy = random.pick(["end", "reset"] as const);
    return plan(random, text.slice(0, cutAt), { ending: brokenBy, expect: "cut", status, body });
  }
  if (random.oneIn(4)) {
    // In one piece: if it came later, while the app has the next request, it could not be told from that request's response.
    return { pieces: [text + STRAY], after: "body", ending, expect: "whole", status, body };
  }
  return plan(random, text, { ending, expect: "whole", status, body });
}

function oddAnswer(random: Random, id: string): ResponsePlan {
  const line = `${random.pick(VERSIONS)} ${random.pick(STATUSES)} ${random.pick(REASONS)}`;
  const fields = [`X-Saw: ${id}`, ...random.some(FIELDS, 7)];
  const end = random.oneIn(8) ? "\n" : "\r\n";
  const interim = random.oneIn(4) ? random.pick(INTERIM).repeat(1 + random.int(30)) : "";
  let text = `${interim}${[line, ...fields].join(end)}${end}${end}${random.pick(BODIES)}`;
  if (random.oneIn(10)) text = "";
  if (random.oneIn(2)) text = mutate(random, text);
  return plan(random, text, {
    ending: random.pick(["keep", "end", "end", "reset"]),
    expect: "any",
    status: 0,
    body: "",
  });
}

export const responsePlan = (random: Random, id: string): ResponsePlan =>
  random.oneIn(2) ? soundAnswer(random, id) : oddAnswer(random, id);

/** In response to an upgrade: 101 in all its forms, and everything else. */
export function upgradePlan(random: Random, id: string): ResponsePlan {
  if (random.oneIn(3)) return responsePlan(random, id);
  const fields = [
    `X-Saw: ${id}`,
    ...(random.oneIn(4) ? [] : ["Connection: Upgrade"]),
    ...(random.oneIn(4)
      ? random.some(["Upgrade: h2c", "Upgrade: websocket, h2c", "Upgrade:"], 2)
      : ["Upgrade: websocket"]),
    ...random.some(FIELDS, 8),
  ];
  let text = `HTTP/1.1 101 ${random.pick(REASONS)}\r\n${fields.join("\r\n")}\r\n\r\nhello`;
  if (random.oneIn(2)) text = mutate(random, text);
  return plan(random, text, { ending: random.pick(["end", "reset"]), expect: "any", status: 0, body: "" });
}
