import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryInUse } from "../../test/harness/memory-in-use.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/* Unusual connections: the server responds in the documented format or not at all. */

let t: TestApp;
/** Ports of a server with short timeouts and of one with the default timeouts. */
let port: number;
let patientPort: number;
let patient: TestApp;
beforeAll(async () => {
  t = await buildTestApp({ requestTimeoutMs: 1000 });
  patient = await buildTestApp();
  port = await listen(t);
  patientPort = await listen(patient);
});
afterAll(() => Promise.all([t.close(), patient.close()]));

async function listen({ app }: TestApp): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

const MIB = 1_048_576;

function open(to = port): { socket: Socket; received: () => string; closed: Promise<void> } {
  const socket = connect({ host: "127.0.0.1", port: to, allowHalfOpen: true });
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("end", () => socket.end());
  return { socket, received: () => text, closed };
}

/** Sends bytes unchanged and returns all data until the server closes the connection. */
async function send(...pieces: string[]): Promise<string> {
  const { socket, received, closed } = open();
  for (const piece of pieces) socket.write(piece, "latin1");
  await closed;
  return received();
}

interface HttpResponse {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  readonly body: any;
}

/**
 * Parses the responses of a connection; each must have a JSON body of its announced length, with no bytes between or after the responses.
 */
function readResponses(text: string): HttpResponse[] {
  const responses: HttpResponse[] = [];
  for (let rest = text; rest !== ""; ) {
    const end = rest.indexOf("\r\n\r\n");
    const head = rest.slice(0, end);
    expect(head).toMatch(/^HTTP\/1\.1 \d{3} /);
    expect(head).toMatch(/^content-type: application\/json/im);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
    const body = rest.slice(end + 4, end + 4 + length);
    responses.push({ status: Number(head.slice(9, 12)), body: JSON.parse(body) });
    rest = rest.slice(end + 4 + length);
  }
  return responses;
}

const kindsOf = (text: string): string[] =>
  readResponses(text).map(({ status, body }) => {
    expect(body.meta.requestId).toMatch(/^req_/);
    if (body.error === undefined) return String(status);
    expect(body.error.status).toBe(status);
    return `${status} ${body.error.type.split("/").at(-1)}`;
  });

/** Returns a request with a 200 response. */
const good = (head = ""): string => `GET /v2/liveness HTTP/1.1\r\nHost: a\r\n${head}\r\n`;
/** Returns a request with a 404 response after a read from Postgres. */
const slow = (): string => {
  const body = JSON.stringify({ apiId: "api_missing0" });
  return `POST /v2/apis.getApi HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.workspace.rootKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};

describe("an invalid request", () => {
  test.each([
    { name: "bytes that are not HTTP", sent: "hello\r\n\r\n", kind: "400 request_body_unreadable" },
    { name: "another protocol", sent: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kind: "400 request_body_unreadable" },
    { name: "no Host", sent: "GET /v2/liveness HTTP/1.1\r\nConnection: close\r\n\r\n", kind: "400 invalid_input" },
    {
      name: "two lengths",
      sent: "POST /v2/apis.getApi HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      kind: "400 request_body_unreadable",
    },
    {
      name: "a chunk of no length",
      sent: "POST /v2/apis.getApi HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      kind: "400 request_body_unreadable",
    },
    {
      name: "headers of 100 kB",
      sent: `GET /v2/liveness HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(100_000)}\r\n\r\n`,
      kind: "431 request_headers_too_large",
    },
    {
      name: "headers of 5 MB",
      sent: `GET /v2/liveness HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(5_000_000)}\r\n\r\n`,
      kind: "431 request_headers_too_large",
    },
    {
      name: "an unknown expectation",
      sent: good("Expect: the-unexpected\r\nConnection: close\r\n"),
      kind: "417 expectation_failed",
    },
    { name: "a tunnel", sent: "CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n", kind: "405 method_not_allowed" },
    { name: "half a head", sent: "GET /v2/liveness HTTP/1.1\r\nHo", kind: "408 request_timeout" },
  ])("invalid HTTP request with $name gets $kind", async ({ sent, kind }) => {
    expect(kindsOf(await send(sent))).toEqual([kind]);
  });

  test("connection without a request is closed without a response", async () => {
    expect(await send()).toBe("");
  });

  test("idle connection gets nothing further after the response to its request", async () => {
    const { socket, received } = open();
    socket.write(good());
    await waitFor("the answer", () => received().includes("req_"));
    await sleep(2500);
    expect(kindsOf(received())).toEqual(["200"]);
    socket.destroy();
  });
});

describe("several requests on one connection", () => {
  test.each([
    { name: "garbage", behind: "garbage\r\n\r\n", last: "400 request_body_unreadable" },
    {
      name: "headers too large",
      behind: `GET / HTTP/1.1\r\nX: ${"x".repeat(70_000)}\r\n\r\n`,
      last: "431 request_headers_too_large",
    },
    {
      name: "a bad chunk",
      behind: "POST /v2/apis.getApi HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      last: "400 request_body_unreadable",
    },
    { name: "no Host", behind: "GET /v2/liveness HTTP/1.1\r\nConnection: close\r\n\r\n", last: "400 invalid_input" },
    { name: "a tunnel", behind: "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", last: "405 method_not_allowed" },
    { name: "half a request", behind: "GET /v2/liveness HTTP/1.1\r\nHo", last: "408 request_timeout" },
  ])("invalid request with $name does not affect the responses to earlier valid requests", async ({ behind, last }) => {
    expect(kindsOf(await send(`${good()}${slow()}${good()}${behind}`))).toEqual([
      "200",
      "404 api_not_found",
      "200",
      last,
    ]);
    // The result is the same if the invalid request arrives separately while the others are being handled.
    expect(kindsOf(await send(slow(), behind))).toEqual(["404 api_not_found", last]);
  });

  test("bytes after a request with `Connection: close` are ignored", async () => {
    expect(kindsOf(await send(`${good("Connection: close\r\n")}garbage\r\n\r\n`))).toEqual(["200"]);
  });
});

describe("a client that half-closes its connection", () => {
  test.each([
    { name: "after one request", sent: () => slow(), kinds: ["404 api_not_found"] },
    {
      name: "after three",
      sent: () => good() + slow() + slow(),
      kinds: ["200", "404 api_not_found", "404 api_not_found"],
    },
    {
      name: "in the middle of a head behind a good one",
      sent: () => `${slow()}GET /v2/live`,
      kinds: ["404 api_not_found", "400 request_body_unreadable"],
    },
    { name: "before anything", sent: () => "", kinds: [] },
  ])("client that half-closes its connection $name gets its responses", async ({ sent, kinds }) => {
    const { socket, received, closed } = open();
    socket.end(sent());
    await closed;
    expect(kindsOf(received())).toEqual(kinds);
  });
});

describe("a body that is too large", () => {
  const head = (framing: string, more = ""): string =>
    `POST /v2/apis.createApi HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${more}${framing}\r\n\r\n`;

  /** Writes the complete body before it reads a byte. */
  async function writeThenRead(bytes: number, framing: "length" | "chunks"): Promise<string> {
    const { socket, received, closed } = open(patientPort);
    socket.pause();
    const piece = Buffer.alloc(MIB, "x");
    socket.write(head(framing === "length" ? `Content-Length: ${bytes}` : "Transfer-Encoding: chunked"));
    for (let sent = 0; sent < bytes; sent += MIB) {
      if (framing === "chunks") socket.write(`${MIB.toString(16)}\r\n`);
      const flushed = new Promise((done) => socket.write(piece, done));
      if (framing === "chunks") socket.write("\r\n");
      await Promise.race([flushed, closed]);
    }
    if (framing === "chunks") socket.write("0\r\n\r\n");
    await sleep(50);
    socket.resume();
    await closed;
    return received();
  }

  test.each(["length", "chunks"] as const)(
    "oversized body gets 413 even if the client writes 30 MB before reading (%s)",
    async (framing) => {
      expect(kindsOf(await writeThenRead(30 * MIB, framing))).toEqual(["413 request_body_too_large"]);
    },
  );

  test("oversized body with Expect gets 413 instead of 100 Continue", async () => {
    const { socket, received } = open(patientPort);
    socket.write(head(`Content-Length: ${30 * MIB}`, "Expect: 100-continue\r\n"));
    await waitFor("an answer", () => received().includes("requestId"));
    expect(kindsOf(received())).toEqual(["413 request_body_too_large"]);
    socket.destroy();
  });

  test("body within the limit gets 100 Continue", async () => {
    const { socket, received } = open(patientPort);
    socket.write(head("Content-Length: 2", "Expect: 100-continue\r\n"));
    await waitFor("the word", () => received() === "HTTP/1.1 100 Continue\r\n\r\n");
    socket.write("{}");
    await waitFor("the answer", () => received().includes(" 401 "));
    socket.destroy();
  });

  test("oversized body is discarded, and the connection is closed if the body does not end", async () => {
    const before = memoryInUse().arrayBuffers;
    const uploads = Array.from({ length: 8 }, () => open(patientPort));
    for (const { socket } of uploads) socket.write(head(`Content-Length: ${1e12}`));
    const piece = Buffer.alloc(MIB, "x");
    const writing = uploads.map(async ({ socket, closed }) => {
      let sent = 0;
      while (!socket.destroyed && sent < 500 * MIB) {
        await Promise.race([new Promise((done) => socket.write(piece, done)), closed]);
        sent += MIB;
      }
      return sent;
    });
    await waitFor("all to be refused", () => uploads.every(({ received }) => received().includes(" 413 ")));
    expect(memoryInUse().arrayBuffers - before).toBeLessThan(30 * MIB);
    expect(Math.max(...(await Promise.all(writing)))).toBeLessThan(200 * MIB);
  }, 60_000);
});
