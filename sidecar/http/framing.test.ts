import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PathAllowance } from "../../core/policies/policy.ts";
import { aRule, openGate, readAll, sendRaw, type TestGate, waitFor } from "../../test/harness/gate.ts";

/*
 * Framing over raw sockets: an ambiguous request is rejected and its connection closed, so that later bytes cannot be taken for a request.
 */

let gate: TestGate;
let key: string;
beforeAll(async () => {
  gate = await openGate({
    policy: { rules: [aRule({ path: { prefix: "/open" }, access: "Anonymous" })] },
    config: { limits: { headBytesMax: 8 * 1024 } },
  });
  key = await gate.records.putKey();
});
afterAll(() => gate.close());
beforeEach(() => {
  gate.app.seen.length = 0;
});

const lines = (...all: string[]): string => `${all.join("\r\n")}\r\n\r\n`;

describe("ambiguous framing: 400, and the connection is closed", () => {
  const smuggled = "GET /open/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  test.each([
    {
      name: "Content-Length with Transfer-Encoding",
      head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: 4", "Transfer-Encoding: chunked"],
      body: "0\r\n\r\n",
    },
    {
      name: "Transfer-Encoding with Content-Length",
      head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Content-Length: 4"],
      body: "0\r\n\r\n",
    },
    {
      name: "two lengths",
      head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: 4", "Content-Length: 5"],
      body: "body",
    },
    {
      name: "two equal lengths",
      head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: 4", "Content-Length: 4"],
      body: "body",
    },
    { name: "a list of lengths", head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: 4, 4"], body: "body" },
    {
      name: "a length that is no number",
      head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: +4"],
      body: "body",
    },
    { name: "two Hosts", head: ["GET /open HTTP/1.1", "Host: a", "Host: b"], body: "" },
    { name: "a Host with a user", head: ["GET /open HTTP/1.1", "Host: a@b"], body: "" },
    { name: "a Host with a path", head: ["GET /open HTTP/1.1", "Host: a/open"], body: "" },
    { name: "another host in the target", head: ["GET http://b/open HTTP/1.1", "Host: a"], body: "" },
    { name: "another port in the target", head: ["GET http://a:81/open HTTP/1.1", "Host: a"], body: "" },
    { name: "a user in the target", head: ["GET http://a@b/open HTTP/1.1", "Host: b"], body: "" },
    { name: "another host than in the target, of HTTP/1.0", head: ["GET http://b/open HTTP/1.0", "Host: a"], body: "" },
    { name: "no Host", head: ["GET /open HTTP/1.1"], body: "" },
    { name: "a line folded", head: ["GET /open HTTP/1.1", "Host: a", "X-Folded: a", " b"], body: "" },
    { name: "a space before the colon", head: ["GET /open HTTP/1.1", "Host: a", "Content-Length : 4"], body: "" },
    { name: "an unknown coding", head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: gzip"], body: "" },
    {
      name: "a coding after chunked",
      head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: chunked, identity"],
      body: "0\r\n\r\n",
    },
    {
      name: "chunked twice in one header",
      head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: chunked, chunked"],
      body: "0\r\n\r\n",
    },
    { name: "an empty coding", head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding:"], body: "0\r\n\r\n" },
    {
      name: "a coding after a control character",
      head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: \x0bchunked"],
      body: "0\r\n\r\n",
    },
    { name: "an empty length", head: ["POST /open HTTP/1.1", "Host: a", "Content-Length:"], body: "" },
    {
      name: "a length beyond 64 bits",
      head: ["POST /open HTTP/1.1", "Host: a", "Content-Length: 18446744073709551621"],
      body: "hello",
    },
    { name: "a folded first header", head: ["GET /open HTTP/1.1", " X-Folded: a", "Host: a"], body: "" },
    { name: "a bare line feed in the head", head: ["GET /open HTTP/1.1", "X-Other: a\nHost: a"], body: "" },
    {
      name: "a bare carriage return in a value",
      head: ["GET /open HTTP/1.1", "Host: a", "X-Other: a\rX: b"],
      body: "",
    },
    { name: "a zero byte in a value", head: ["GET /open HTTP/1.1", "Host: a", "X-Other: a\0"], body: "" },
    { name: "a header without a name", head: ["GET /open HTTP/1.1", "Host: a", ": b"], body: "" },
    {
      name: "chunked twice",
      head: ["POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
      body: "0\r\n\r\n",
    },
    {
      name: "chunks in HTTP/1.0",
      head: ["POST /open HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"],
      body: "0\r\n\r\n",
    },
    {
      name: "a head that is too long",
      head: ["GET /open HTTP/1.1", "Host: a", `X-Long: ${"a".repeat(9000)}`],
      body: "",
    },
    { name: "a target that is too long", head: [`GET /open/${"a".repeat(9000)} HTTP/1.1`, "Host: a"], body: "" },
    { name: "a tunnel", head: ["CONNECT other:443 HTTP/1.1", "Host: other:443"], body: "" },
    { name: "no HTTP at all", head: ["hello"], body: "" },
  ])("gate responds 400 to ambiguous framing: $name", async ({ head, body }) => {
    const { status, text } = await sendRaw(gate.port, lines(...head) + body + smuggled);
    expect(status).toBe(400);
    expect(text).toContain("/errors/malformed_request");
    expect(text.match(/^HTTP\/1\.1 \d/gm)).toHaveLength(1);
    expect(text.toLowerCase()).toContain("connection: close");
    expect(gate.app.seen).toEqual([]);
  });

  test.each([
    { name: "a chunk size that is no number", body: "zz\r\nab\r\n0\r\n\r\n" },
    { name: "a chunk without its end of line", body: "2\r\nabcd\r\n0\r\n\r\n" },
    { name: "a bare line feed after a chunk size", body: "2\nab\r\n0\r\n\r\n" },
    { name: "a bare line feed in a chunk extension", body: "2;a\nab\r\n0\r\n\r\n" },
    { name: "a bare carriage return in a chunk extension", body: "2;a\rb\r\nab\r\n0\r\n\r\n" },
    { name: "a zero byte in a chunk extension", body: "2;a\0\r\nab\r\n0\r\n\r\n" },
    { name: "a space after a chunk size", body: "2 \r\nab\r\n0\r\n\r\n" },
    { name: "a chunk size with a sign", body: "+2\r\nab\r\n0\r\n\r\n" },
    { name: "a chunk size beyond 64 bits", body: "ffffffffffffffff2\r\nab\r\n0\r\n\r\n" },
    { name: "a folded trailer", body: "2\r\nab\r\n0\r\nX: a\r\n b\r\n\r\n" },
    { name: "a bare line feed after a trailer", body: "2\r\nab\r\n0\r\nX: a\n\r\n" },
    { name: "a length as a trailer", body: "2\r\nab\r\n0\r\nContent-Length: 50\r\n\r\n" },
    { name: "trailers that are too long", body: `2\r\nab\r\n0\r\nX: ${"a".repeat(9_000)}\r\n\r\n` },
  ])("gate rejects an already admitted request because of $name", async ({ body }) => {
    const head = lines("POST /open HTTP/1.1", "Host: a", "Transfer-Encoding: chunked");
    const { status, text } = await sendRaw(gate.port, head, body + smuggled);
    expect([0, 400]).toContain(status);
    expect(text).not.toContain("200 OK");
    expect(gate.app.seen).toEqual([]);
  });
});

describe("paths", () => {
  test.each([
    "/open/../admin",
    "/open/./x",
    "/open/%2e%2e/admin",
    "/open/.%2E/admin",
    "/open%2f..%2fadmin",
    "/open%2Fadmin",
    "/open\\admin",
    "/open%5cadmin",
    "/open/%00",
    "/open//admin",
    "//open",
    "/open;x=1/admin",
    "/open/%zz",
    "/open#/../admin",
    "/open/\x01",
    "/open/\x7f",
    "/open/\xff",
    "/open/%fe",
    "/open/%0a",
    "http://a/open/../admin",
    "*",
    "open",
    "http://",
  ])("gate responds 400 to path %s", async (target) => {
    const { status, text } = await sendRaw(gate.port, lines(`GET ${target} HTTP/1.1`, "Host: a", "Connection: close"));
    expect(status).toBe(400);
    expect(text).toContain("/errors/malformed_request");
    expect(gate.app.seen).toEqual([]);
  });

  test.each([
    { target: "/open/a.b/..c?x=../..//%2f", reaches: "/open/a.b/..c?x=../..//%2f" },
    { target: "http://A/open/a?b", reaches: "/open/a?b" },
    { target: "/open/%7euser", reaches: "/open/~user" },
    { target: "/open/%c3%be%40|", reaches: "/open/%C3%BE@%7C" },
  ])("gate forwards request target $target to the app as $reaches", async ({ target, reaches }) => {
    const { status } = await sendRaw(gate.port, lines(`GET ${target} HTTP/1.1`, "Host: a", "Connection: close"));
    expect(status).toBe(200);
    expect(gate.app.seen[0]?.url).toBe(reaches);
  });

  test.each(["/opener", "/open-admin", "/Open"])("path prefix /open does not match %s", async (target) => {
    expect((await sendRaw(gate.port, lines(`GET ${target} HTTP/1.1`, "Host: a", "Connection: close"))).status).toBe(
      401,
    );
  });
});

describe("the app receives the target that the policy evaluated", () => {
  let lenient: TestGate;
  beforeAll(async () => {
    const rules = [
      aRule({ path: { prefix: "/admin" } }),
      aRule({ path: { exact: "/x%2Fy" } }),
      aRule({ access: "Anonymous" }),
    ];
    lenient = await openGate({ policy: { rules, allowPaths: PathAllowance.options } });
  });
  afterAll(() => lenient.close());

  test.each([
    { target: "/%61dmin/x", status: 401 },
    { target: "/x%2fy", status: 401 },
    { target: "http://a/admin", status: 401 },
    { target: "/x/../admin", reaches: "/x/../admin" },
    { target: "/x%2f..%2fadmin", reaches: "/x%2F..%2Fadmin" },
    { target: "//admin", reaches: "//admin" },
    { target: "/x;/admin", reaches: "/x;/admin" },
    { target: "/x\\admin", reaches: "/x%5Cadmin" },
    { target: "/ADMIN%0a%ff", reaches: "/ADMIN%0A%FF" },
    { target: "http://a//admin", reaches: "//admin" },
    { target: "http://a?/admin", reaches: "/?/admin" },
  ])("gate forwards the evaluated form of request target $target", async ({ target, status = 200, reaches }) => {
    lenient.app.seen.length = 0;
    const sent = await sendRaw(lenient.port, lines(`GET ${target} HTTP/1.1`, "Host: a", "Connection: close"));
    expect(sent.status).toBe(status);
    expect(lenient.app.seen.map(({ url }) => url)).toEqual(reaches === undefined ? [] : [reaches]);
  });
});

describe("headers", () => {
  test("gate strips whitespace after a header value", async () => {
    const request = lines(
      "POST /a HTTP/1.1",
      "Host: a \t",
      `Authorization: Bearer ${key} \t`,
      "X-Other: b  ",
      "Transfer-Encoding: chunked ",
      "Connection: close ",
    );
    expect((await sendRaw(gate.port, `${request}2\r\nab\r\n0\r\n\r\n`)).status).toBe(200);
    expect(gate.app.seen[0]).toMatchObject({ body: "ab", headers: { host: "a", "x-other": "b" } });
  });

  test("gate removes forged identity headers in any spelling and position", async () => {
    const request = lines(
      "POST /open HTTP/1.1",
      "Host: a",
      "X-Postern-Key-Id: forged",
      "x_postern_roles: admin",
      "X-POSTERN-ANYTHING: forged",
      "Connection: close, X-Postern-Request-Id",
      "Trailer: X-Postern-Key-Id",
      "Transfer-Encoding: chunked",
    );
    await sendRaw(gate.port, `${request}2\r\nab\r\n0\r\nX-Postern-Key-Id: forged\r\n\r\n`);
    const [seen] = gate.app.seen;
    expect(seen?.body).toBe("ab");
    expect(Object.keys(seen?.headers ?? {}).filter((name) => name.includes("postern"))).toEqual([
      "x-postern-request-id",
    ]);
  });

  test("Connection header of a client cannot remove headers that the gate sets", async () => {
    const request = lines(
      "GET /a HTTP/1.1",
      "Host: a",
      `Authorization: Bearer ${key}`,
      "Connection: close, X-Postern-Key-Id, Authorization",
    );
    expect((await sendRaw(gate.port, request)).status).toBe(200);
    expect(gate.app.seen[0]?.headers["x-postern-key-id"]).toMatch(/^key_/);
  });

  test("gate responds 400 when a credential is sent twice", async () => {
    const request = lines("GET /a HTTP/1.1", "Host: a", `X-API-Key: ${key}`, "X-API-Key: other", "Connection: close");
    expect((await sendRaw(gate.port, request)).status).toBe(400);
  });

  test("gate uses the first credential present, even if only a later one is valid", async () => {
    const request = lines(
      "GET /a HTTP/1.1",
      "Host: a",
      `X-API-Key: ${key}`,
      "Authorization: Bearer bad",
      "Connection: close",
    );
    expect((await sendRaw(gate.port, request)).status).toBe(401);
  });

  test("gate responds 400 when a request has more headers than HTTP servers process", async () => {
    const many = (count: number) => Array.from({ length: count }, () => "a:");
    const ask = (count: number) =>
      sendRaw(gate.port, lines("GET /a HTTP/1.1", "Host: a", ...many(count), `X-API-Key: ${key}`, "Connection: close"));
    expect((await ask(1500)).status).toBe(400);
    expect((await ask(497)).status).toBe(200);
    expect(gate.app.seen[0]?.headers["x-postern-key-id"]).toMatch(/^key_/);
  });

  test("gate serves HTTP/1.0 without Host and closes the connection", async () => {
    const { status, text } = await sendRaw(gate.port, lines("GET /open HTTP/1.0"));
    expect(status).toBe(200);
    expect(text).toMatch(/\r\n\r\nok$/);
  });
});

test("gate responds to consecutive requests on one connection in order", async () => {
  const socket = connect(gate.port, "127.0.0.1");
  const read = readAll(socket);
  const request = (path: string, more: string[] = []) => lines(`GET ${path} HTTP/1.1`, "Host: a", ...more);
  socket.write(request("/open/1") + request("/closed") + request("/a", [`X-API-Key: ${key}`]) + request("/open/2"));
  await waitFor("four answers", () => (read().match(/HTTP\/1\.1 \d+/g)?.length ?? 0) === 4);
  expect(read().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 401", "HTTP/1.1 200", "HTTP/1.1 200"]);
  socket.destroy();
  await once(socket, "close");
});
