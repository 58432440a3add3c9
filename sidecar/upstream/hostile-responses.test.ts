import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { aRule, call, openGate, sendRaw, startApp, type TestGate } from "../../test/harness/gate.ts";

/* Responses of an app that a client must not get unchanged, or that Node rejects when writing. */

let gate: TestGate;
afterEach(() => gate.close());

const HANDSHAKE = [
  "GET /open HTTP/1.1",
  "Host: a",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "\r\n",
].join("\r\n");
const REQUEST = "GET /open HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

async function openTo(response: string, ending: "end" | "reset" = "end"): Promise<void> {
  const app = await startApp();
  const sendAnswer = (socket: Socket) => {
    socket.on("error", () => {}).write(response, "latin1");
    if (ending === "end") socket.end();
    // Waits until the client has the earlier data, because a reset overtakes it.
    else setTimeout(() => socket.resetAndDestroy(), 200);
  };
  app.server.on("upgrade", (_req, socket: Socket) => sendAnswer(socket));
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => sendAnswer(req.socket));
  gate = await openGate({ app, policy: { rules: [aRule({ access: "Anonymous" })] } });
}

/** The rest of a head after its status line. */
const AMBIGUOUS: ReadonlyArray<{ readonly name: string; readonly rest: string }> = [
  { name: "a length and chunks", rest: "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" },
  { name: "two lengths", rest: "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!" },
  { name: "two equal lengths", rest: "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a list of lengths", rest: "Content-Length: 2, 2\r\n\r\nok" },
  { name: "a length with a sign", rest: "Content-Length: +2\r\n\r\nok" },
  { name: "an empty length", rest: "Content-Length:\r\n\r\nok" },
  { name: "chunked twice", rest: "Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" },
  { name: "a folded header", rest: "X: a\r\n b\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a bare line feed", rest: "X: a\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a bare carriage return", rest: "X: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a zero byte", rest: "X: a\0b\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a space before a colon", rest: "X : a\r\nContent-Length: 2\r\n\r\nok" },
  { name: "a header without a name", rest: ": a\r\nContent-Length: 2\r\n\r\nok" },
];

const isAlive = async () => expect((await call(gate.port, { path: "/open" })).status).toBeGreaterThan(0);

describe.each([
  { kind: "a request", request: REQUEST },
  { kind: "an upgrade", request: HANDSHAKE },
])("in response to $kind", ({ request }) => {
  test.each(["000", "001", "099"])("gate responds 502 when the upstream status is %s", async (status) => {
    await openTo(`HTTP/1.1 ${status} Odd\r\nContent-Length: 0\r\n\r\n`);
    expect((await sendRaw(gate.port, request)).status).toBe(502);
    await isAlive();
  });

  test.each(AMBIGUOUS)("gate responds 502 to an invalid upstream response: $name", async ({ rest }) => {
    await openTo(`HTTP/1.1 200 OK\r\n${rest}`);
    const { status, text } = await sendRaw(gate.port, request);
    expect(status).toBe(502);
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(text).not.toMatch(/set-cookie|200 OK/i);
    await isAlive();
  });

  test.each([
    { name: "a control character", status: "400 n\x01o", says: "HTTP/1.1 400 Bad Request\r\n" },
    { name: "a character beyond ASCII", status: "400 \xd0\x96\xff", says: "HTTP/1.1 400 Bad Request\r\n" },
    { name: "nothing", status: "404 ", says: "HTTP/1.1 404 Not Found\r\n" },
    { name: "words of its own", status: "404 Not  here!", says: "HTTP/1.1 404 Not  here!\r\n" },
    { name: "a status without a name", status: "799 \x01", says: "HTTP/1.1 799 unknown\r\n" },
  ])("gate replaces only an invalid upstream reason phrase: the phrase is $name", async ({ status, says }) => {
    await openTo(`HTTP/1.1 ${status}\r\nContent-Length: 4\r\n\r\nbody`);
    const { text } = await sendRaw(gate.port, request);
    expect(text.slice(0, says.length)).toBe(says);
    expect(text).toMatch(/\r\n\r\nbody$/);
    await isAlive();
  });

  test.each([
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: gzip"],
    ["Transfer-Encoding: gzip", "Connection: close, Transfer-Encoding"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 5"],
  ])("gate responds 502 to unrequested coding or ambiguous framing: %s %s", async (...fields) => {
    await openTo(`HTTP/1.1 200 OK\r\n${fields.join("\r\n")}\r\n\r\n2\r\nok\r\n0\r\n\r\n`);
    const { status, text } = await sendRaw(gate.port, request);
    expect(status).toBe(502);
    expect(text).toContain("/errors/upstream_invalid_response");
    expect(text.match(/^HTTP/gm)).toHaveLength(1);
  });

  test("gate accepts upstream `chunked` coding in any letter case", async () => {
    await openTo("HTTP/1.1 200 OK\r\nTransfer-Encoding:  CHUNKED \r\n\r\n2\r\nok\r\n0\r\n\r\n");
    const { text } = await sendRaw(gate.port, request);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).toMatch(/\r\n\r\n2\r\nok\r\n0\r\n\r\n$/);
  });

  test("gate forwards an upstream head of 50,000 bytes and responds 502 to one of 100,000 bytes", async () => {
    const respond = (bytes: number) => `HTTP/1.1 200 OK\r\nX-Long: ${"l".repeat(bytes)}\r\nContent-Length: 2\r\n\r\nok`;
    await openTo(respond(50_000));
    expect((await sendRaw(gate.port, request)).text).toMatch(/^HTTP\/1\.1 200 OK\r\nx-long: l{50000}\r\n/);
    await gate.close();
    await openTo(respond(100_000));
    const { status, text } = await sendRaw(gate.port, request);
    expect(status).toBe(502);
    expect(text).toContain("/errors/upstream_invalid_response");
    await isAlive();
  });

  test("gate drops an unrequested `100 Continue` and forwards `103 Early Hints`", async () => {
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Gone\r\nX-Gone: 1\r\n\r\n";
    const interim = `HTTP/1.1 100 Continue\r\n\r\n${hints}HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n`;
    await openTo(`${interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
    const { text } = await sendRaw(gate.port, request);
    expect(text).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a>\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(text).toMatch(/\r\n\r\nok$/);
  });

  test("gate limits interim responses and sends none to HTTP/1.0 clients", async () => {
    await openTo(`${"HTTP/1.1 102 Processing\r\n\r\n".repeat(100)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
    const { text } = await sendRaw(gate.port, request);
    expect(text.match(/^HTTP\/1\.1 102 Processing\r$/gm)).toHaveLength(10);
    expect(text).toMatch(/\r\n\r\nok$/);
    const old = await sendRaw(gate.port, "GET /open HTTP/1.0\r\nHost: a\r\n\r\n");
    expect(old.status).toBe(200);
  });

  test.each([
    { name: "its length", head: "Content-Length: 10", ending: "end" },
    { name: "its length, by a reset", head: "Content-Length: 10", ending: "reset" },
    { name: "its last chunk", head: "Transfer-Encoding: chunked", ending: "end" },
    { name: "its last chunk, by a reset", head: "Transfer-Encoding: chunked", ending: "reset" },
    { name: "the end of its connection, by a reset", head: "Connection: close", ending: "reset" },
  ] as const)("upstream response that is truncated before $name stays visibly incomplete", async ({ head, ending }) => {
    const response = `HTTP/1.1 200 OK\r\n${head}\r\n\r\n3\r\nabc\r\n`;
    await openTo(response, ending);
    const { text } = await sendRaw(gate.port, request);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).not.toMatch(/0\r\n\r\n$/);
    const length = /^content-length: (\d+)/im.exec(text)?.[1];
    expect(length ?? "chunked").toBe(head.startsWith("Content") ? "10" : "chunked");

    const socket = connect(gate.port, "127.0.0.1").resume();
    socket.write("GET /open HTTP/1.0\r\nHost: a\r\n\r\n");
    await expect(once(socket, "close")).rejects.toMatchObject({ code: "ECONNRESET" });
  });
});

test("gate removes an invalid reason phrase from a 101 response", async () => {
  await openTo("HTTP/1.1 101 S\x01P\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
  const { text } = await sendRaw(gate.port, HANDSHAKE);
  expect(text).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  expect(text).toMatch(/\r\n\r\nhello$/);
});

test("gate responds 502 to an unrequested 101 and closes the upstream connection", async () => {
  await openTo("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbytes of it");
  const { status, text } = await sendRaw(gate.port, REQUEST);
  expect(status).toBe(502);
  expect(text).not.toContain("bytes of it");
  await isAlive();
});
