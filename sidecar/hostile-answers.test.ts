import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { aRule, call, openGate, sendRaw, startApp, type TestGate } from "../test/harness/gate.ts";

/* Answers of an app that a client must not get as they are, or that Node refuses to write. */

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

async function openTo(answer: string): Promise<void> {
  const app = await startApp();
  const sendAnswer = (socket: Socket) => socket.on("error", () => {}).end(Buffer.from(answer, "latin1"));
  app.server.on("upgrade", (_req, socket: Socket) => sendAnswer(socket));
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => sendAnswer(req.socket));
  gate = await openGate({ app, policy: { rules: [aRule({ access: "Anonymous" })] } });
}

const isAlive = async () => expect((await call(gate.port, { path: "/open" })).status).toBeGreaterThan(0);

describe.each([
  { kind: "a request", request: REQUEST },
  { kind: "an upgrade", request: HANDSHAKE },
])("in answer to $kind", ({ request }) => {
  test.each(["000", "001", "099"])("the status %s: 502", async (status) => {
    await openTo(`HTTP/1.1 ${status} Odd\r\nContent-Length: 0\r\n\r\n`);
    expect((await sendRaw(gate.port, request)).status).toBe(502);
    await isAlive();
  });

  test.each([
    { name: "a control character", status: "400 n\x01o", says: "HTTP/1.1 400 Bad Request\r\n" },
    { name: "a character beyond ASCII", status: "400 \xd0\x96\xff", says: "HTTP/1.1 400 Bad Request\r\n" },
    { name: "nothing", status: "404 ", says: "HTTP/1.1 404 Not Found\r\n" },
    { name: "words of its own", status: "404 Not  here!", says: "HTTP/1.1 404 Not  here!\r\n" },
    { name: "a status without a name", status: "799 \x01", says: "HTTP/1.1 799 unknown\r\n" },
  ])("a reason phrase of $name", async ({ status, says }) => {
    await openTo(`HTTP/1.1 ${status}\r\nContent-Length: 4\r\n\r\nbody`);
    const { text } = await sendRaw(gate.port, request);
    expect(text.slice(0, says.length)).toBe(says);
    expect(text).toMatch(/\r\n\r\nbody$/);
    await isAlive();
  });

  test.each([
    ["Transfer-Encoding: gzip, chunked"],
    ["Transfer-Encoding: gzip"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 5"],
  ])("a coding that nobody asked for, or framing of two kinds: 502 (%s %s)", async (...fields) => {
    await openTo(`HTTP/1.1 200 OK\r\n${fields.join("\r\n")}\r\n\r\n2\r\nok\r\n0\r\n\r\n`);
    const { status, text } = await sendRaw(gate.port, request);
    expect(status).toBe(502);
    expect(text).toContain("/errors/upstream_invalid_answer");
    expect(text.match(/^HTTP/gm)).toHaveLength(1);
  });

  test("the coding `chunked` in any letters is undone and done again", async () => {
    await openTo("HTTP/1.1 200 OK\r\nTransfer-Encoding:  CHUNKED \r\n\r\n2\r\nok\r\n0\r\n\r\n");
    const { text } = await sendRaw(gate.port, request);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).toMatch(/\r\n\r\n2\r\nok\r\n0\r\n\r\n$/);
  });
});

test("a reason phrase that cannot be written does not get into a 101 either", async () => {
  await openTo("HTTP/1.1 101 S\x01P\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
  const { text } = await sendRaw(gate.port, HANDSHAKE);
  expect(text).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  expect(text).toMatch(/\r\n\r\nhello$/);
});
