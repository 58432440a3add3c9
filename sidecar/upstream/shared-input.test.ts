import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { OPEN, openGate, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/*
 * All connections to the app are read into one buffer. Each client must get its own bytes, whatever the app sends and whenever the client
 * reads. Each response consists of a different letter and positions.
 */

let gate: TestGate;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await gate.close();
});

/** Returns bytes that identify their response and their position. */
function contentOf(number: number, bytes: number): Buffer {
  const content = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at++) content[at] = (number * 31 + at * 7 + (at >> 8)) & 255;
  return content;
}

const chunked = (content: Buffer, bytes: number): Buffer[] => {
  const pieces: Buffer[] = [];
  for (let at = 0; at < content.length; at += bytes) {
    const chunk = content.subarray(at, at + bytes);
    pieces.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return [...pieces, Buffer.from("0\r\n\r\n")];
};

/** Writes immediately, in chunks per turn of the event loop, or together with the head. */
async function writeAll(socket: Socket, bytes: Buffer, pace: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += pace) {
    if (!socket.write(bytes.subarray(at, at + pace))) await new Promise((resolve) => socket.once("drain", resolve));
    else await new Promise((resolve) => setImmediate(resolve));
  }
}

const SIZES = [1, 900, 16_384, 16_385, 40_000, 65_536, 70_000, 300_000, 12_000_000];
const PACES = [7_777, 65_536, 1_000_000];
const BREAK_MS = 1_500;
const CHUNKS = [0, 1_000, 50_000];

test("upstream responses that arrive simultaneously are not mixed up", { timeout: 60_000 }, async () => {
  const app = await startApp();
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => {
    const [, number = 0, size = 0, pace = 0, chunk = 0] = (req.url ?? "").split("/").map(Number);
    const content = contentOf(number, size);
    const framing = chunk === 0 ? `Content-Length: ${size}` : "Transfer-Encoding: chunked";
    const head = Buffer.from(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
    const whole = Buffer.concat([head, ...(chunk === 0 ? [content] : chunked(content, chunk))]);
    req.socket.on("error", () => undefined);
    void writeAll(req.socket, whole, pace);
  });
  gate = await openGate({ ...OPEN, app });

  const asked = SIZES.flatMap((size) => PACES.flatMap((pace) => CHUNKS.map((chunk) => ({ size, pace, chunk }))));
  const read = asked.map(({ size, pace, chunk }, number) => {
    const socket = connect(gate.port, "127.0.0.1");
    clients.push(socket);
    const pieces: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => pieces.push(bytes));
    // Some clients do not read until all buffers are full and the rest waits in the gate while others are served.
    if (number % 2 === 0) {
      socket.pause();
      setTimeout(() => socket.resume(), BREAK_MS);
    }
    // HTTP/1.0: the response is not chunked and lasts until the end of the connection.
    socket.write(`GET /${number}/${size}/${pace}/${chunk} HTTP/1.0\r\nHost: a\r\n\r\n`);
    return { socket, content: () => afterHead(Buffer.concat(pieces)) };
  });
  await waitFor("all responses", () => read.every(({ socket }) => socket.destroyed), { deadlineMs: 40_000 });
  const digest = (bytes: Buffer): string => `${bytes.length} ${createHash("sha256").update(bytes).digest("hex")}`;
  const got = read.map(({ content }) => digest(content()));
  expect(got).toEqual(asked.map(({ size }, number) => digest(contentOf(number, size))));
});

const afterHead = (bytes: Buffer): Buffer => bytes.subarray(bytes.indexOf("\r\n\r\n") + 4);
