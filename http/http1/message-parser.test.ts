import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageParser } from "./message-parser.ts";

/** A message as parsed, independent of the chunks. */
interface Read {
  method: string;
  target: string;
  headers: string[];
  trailers: string[] | undefined;
  body: string;
  keepsAlive: boolean;
}

/** Reads requests from chunks of a connection; a parse error comes last. */
function readAll(chunks: readonly Buffer[], headBytesMax = 16 * 1024): unknown[] {
  const parser = new MessageParser("request", headBytesMax);
  const read: unknown[] = [];
  let body = "";
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      at = parser.execute(chunk, at);
      if (parser.body !== undefined) body += parser.body.toString("latin1");
      if (parser.phase === "failed") return [...read, parser.fault?.kind];
      if (parser.phase !== "complete") continue;
      const { method, target, headers, trailers, keepsAlive } = parser;
      read.push({ method, target, headers, trailers, body, keepsAlive } satisfies Read);
      body = "";
    }
  }
  parser.free();
  return read;
}

const MESSAGES = Buffer.from(
  [
    "\r\n\r\nGET /a?b=c HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Odd: \xff\t\xe9\r\n\r\n",
    "POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n2;a=b\r\nxy\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n",
    "PUT /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbytes",
    "POST /blanks HTTP/1.1\r\nHost: a \t\r\nX-Blank: \t \r\nX-In: a \tb  \r\nTransfer-Encoding: chunked \r\n\r\n0\r\nX-Sum: 1 \r\nX-Last: 2\t\r\n\r\n",
    "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n",
    `GET /long HTTP/1.1\r\nHost: a\r\nX-Long: ${"l".repeat(3_000)}\r\nX-After: 1\r\n\r\n`,
    "M-SEARCH /last HTTP/1.0\r\n\r\n",
  ].join(""),
  "latin1",
);

describe("consecutive messages", () => {
  const whole = readAll([MESSAGES]) as Read[];

  test("MessageParser parses consecutive messages", () => {
    expect(whole.map(({ method, target, body }) => [method, target, body])).toEqual([
      ["GET", "/a?b=c", ""],
      ["POST", "/chunks", "bodyxy"],
      ["PUT", "/length", "bytes"],
      ["POST", "/blanks", ""],
      ["GET", "/upgrade", ""],
      ["GET", "/long", ""],
      ["M-SEARCH", "/last", ""],
    ]);
    expect(whole[0]?.headers).toEqual(["Host", "a", "X-Empty", "", "X-Odd", "\xff\t\xe9"]);
    expect(whole[1]?.trailers).toEqual(["X-Sum", "1", "X-Other", "2"]);
    expect(whole[3]?.headers).toEqual(["Host", "a", "X-Blank", "", "X-In", "a \tb", "Transfer-Encoding", "chunked"]);
    expect(whole[3]?.trailers).toEqual(["X-Sum", "1", "X-Last", "2"]);
    expect(whole[5]?.headers.slice(2)).toEqual(["X-Long", "l".repeat(3_000), "X-After", "1"]);
    expect(whole.map(({ keepsAlive }) => keepsAlive)).toEqual([true, true, true, true, true, true, false]);
  });

  test("MessageParser stops after the trailers of a message that closes the connection", () => {
    const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    const read = (trailer: string) => readAll([Buffer.from(`${head}${trailer}\r\n\r\n`)]) as Read[];
    expect(read("X-Sum: 1")[0]?.keepsAlive).toBe(true);
    expect(read("Connection: close")[0]?.keepsAlive).toBe(false);
  });

  test("MessageParser parses the same messages from chunks of any size", () => {
    for (const size of [1, 2, 3, 5, 7, 64, 1_000]) {
      const chunks = Array.from({ length: Math.ceil(MESSAGES.length / size) }, (_, i) =>
        MESSAGES.subarray(i * size, (i + 1) * size),
      );
      expect(readAll(chunks)).toEqual(whole);
    }
  });

  test("MessageParser parses the same messages when the input is split at any byte", () => {
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: MESSAGES.length - 1 }), { maxLength: 20 });
    fc.assert(
      fc.property(cuts, (at) => {
        const places = [0, ...at.sort((a, b) => a - b), MESSAGES.length];
        expect(readAll(places.slice(1).map((to, i) => MESSAGES.subarray(places[i], to)))).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });
});

test("MessageParser joins chunks of one read and does not copy a single chunk", () => {
  const parser = new MessageParser("request", 1_000);
  const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const many = Buffer.from(`${head}${"1\r\nx\r\n".repeat(500)}3\r\nend\r\n`);
  expect(parser.execute(many, 0)).toBe(many.length);
  expect([parser.body?.toString(), parser.chunks]).toEqual([`${"x".repeat(500)}end`, 501]);
  const single = Buffer.from("5\r\nalone\r\n");
  parser.execute(single, 0);
  expect(parser.body?.toString()).toBe("alone");
  expect(parser.body?.buffer).toBe(single.buffer);
  // Joined data is not changed by later input.
  expect(many.toString().endsWith("end\r\n")).toBe(true);
});

test("MessageParser parses input that is too large for one execution", () => {
  const parser = new MessageParser("request", 1_000);
  const body = "b".repeat(300_000);
  const input = Buffer.from(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n${body}GET`);
  expect(parser.execute(input, 0)).toBe(input.length - 3);
  expect([parser.phase, parser.body?.toString() === body]).toEqual(["complete", true]);
});

describe("a head that is too long", () => {
  const request = (line: string) => Buffer.from(`GET /${line.startsWith("/") ? line : ""} HTTP/1.1\r\n${line}`);
  test.each([
    { name: "by its target", bytes: Buffer.from(`GET /${"t".repeat(2_000)} HTTP/1.1\r\n`) },
    { name: "by a name", bytes: request(`${"N".repeat(2_000)}: a\r\n`) },
    { name: "by a value that does not end", bytes: request(`Host: ${"v".repeat(2_000)}`) },
    { name: "by many short headers", bytes: request("a:b\r\n".repeat(300)) },
    { name: "by its trailers", bytes: Buffer.concat([chunkedHead(), Buffer.from(`0\r\n${"t: 1\r\n".repeat(300)}`)]) },
  ])("MessageParser rejects a head that becomes too long $name", ({ bytes }) => {
    expect(readAll([bytes], 1_000)).toEqual(["overflow"]);
    expect(
      readAll(
        [...bytes].map((byte) => Buffer.from([byte])),
        1_000,
      ),
    ).toEqual(["overflow"]);
  });

  test("MessageParser accepts a head of exactly the maximum length", () => {
    expect(readAll([request(`Host: ${"v".repeat(900)}\r\n\r\n`)], 1_000)).toHaveLength(1);
  });
});

function chunkedHead(): Buffer {
  return Buffer.from("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

test.each([
  { line: "GET / HTTP/1.2", kind: "version" },
  { line: "GET / HTTP/3.0", kind: "version" },
  { line: "GET / http/1.1", kind: "malformed" },
  { line: "G\x01T / HTTP/1.1", kind: "malformed" },
])("MessageParser rejects $line as $kind", ({ line, kind }) => {
  expect(readAll([Buffer.from(`${line}\r\nHost: a\r\n\r\n`, "latin1")])).toEqual([kind]);
});

test("MessageParser accepts a request with another known HTTP version", () => {
  const parser = new MessageParser("request", 1_000);
  parser.execute(Buffer.from("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 0);
  expect([parser.phase, parser.version]).toEqual(["complete", 20]);
});

describe("responses", () => {
  const response = (text: string, { isBodyless = false } = {}) => {
    const parser = new MessageParser("response", 10_000);
    parser.isBodyless = isBodyless;
    parser.execute(Buffer.from(text), 0);
    return parser;
  };

  test.each(["HTTP/1.1 204 No\r\nContent-Length: 5", "HTTP/1.1 304 No\r\nContent-Length: 5", "HTTP/1.1 103 Early"])(
    "MessageParser reads %j without a body for any framing headers",
    (head) => expect(response(`${head}\r\n\r\n`).phase).toBe("complete"),
  );

  test("MessageParser reads a response to HEAD without a body", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    expect(response(head, { isBodyless: true }).phase).toBe("complete");
    expect(response(head).phase).toBe("body");
  });

  test("MessageParser ends a response when the connection closes only if it has no other framing", () => {
    expect(response("HTTP/1.1 200 OK\r\n\r\nall of it").finish()).toBe(true);
    expect(response("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\na part").finish()).toBe(false);
    expect(response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").finish()).toBe(false);
    expect(response("HTTP/1.1 200 OK\r\nX-Head: of w").finish()).toBe(false);
  });
});

test("thousands of MessageParsers in the middle of a message do not affect each other", () => {
  const parsers = Array.from({ length: 5_000 }, () => new MessageParser("request", 10_000));
  for (const [i, parser] of parsers.entries()) parser.execute(Buffer.from(`GET /${i} HTTP/1.1\r\nX-Num`), 0);
  for (const [i, parser] of parsers.entries()) parser.execute(Buffer.from(`ber: ${i}\r\n\r\n`), 0);
  expect(parsers.every(({ target, headers }, i) => target === `/${i}` && headers[1] === String(i))).toBe(true);
  expect(parsers[17]?.headers).toEqual(["X-Number", "17"]);
  for (const parser of parsers) {
    parser.free();
    parser.free();
  }
});

test("MessageParser hands over the headers of a message without retaining them", () => {
  const parser = new MessageParser("request", 1024);
  const bytes = Buffer.from(
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
  );
  const next = parser.execute(bytes, 0);
  const first = parser.takeHeaders();
  expect(first).toEqual(["Host", "a", "Transfer-Encoding", "chunked"]);
  expect(parser.headers).toEqual([]);
  expect(parser.trailers).toEqual(["X-Sum", "1"]);
  parser.execute(bytes, next);
  expect(parser.takeHeaders()).toEqual(["Host", "b"]);
  expect(first).toEqual(["Host", "a", "Transfer-Encoding", "chunked"]);
  parser.free();
});
