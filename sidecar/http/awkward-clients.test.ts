import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  call,
  type GateOptions,
  OPEN,
  openGate,
  readAll,
  sendRaw,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";

/* Unusual clients that follow the standard, or nearly, must get each of their responses once and in order. */

const MiB = 1024 * 1024;

let gate: TestGate;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await gate.close();
});

const get = (path: string, version = "HTTP/1.1"): string => `GET ${path} ${version}\r\nHost: a\r\n\r\n`;
const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

function open(): { socket: Socket; read: () => string } {
  const socket = connect({ host: "127.0.0.1", port: gate.port, allowHalfOpen: true });
  clients.push(socket);
  return { socket, read: readAll(socket) };
}

/** Opens an app that responds when the test makes it. */
async function openSlowly(options: GateOptions = {}): Promise<ServerResponse[]> {
  const asked: ServerResponse[] = [];
  const app = await startApp((req, res) => {
    req.on("error", () => {});
    req.resume();
    asked.push(res);
  });
  gate = await openGate({ ...OPEN, ...options, app });
  return asked;
}

/** Expects a response of the gate: with its body and an id. */
function expectOurs(text: string, kind: string): void {
  expect(text).toContain(`/errors/${kind}`);
  expect(text).toMatch(/x-request-id: req_/i);
  expect(text.toLowerCase()).toContain("connection: close");
}

describe("well-formed versions other than HTTP/1.x", () => {
  test.each(["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/2.7", "HTTP/3.0", "HTTP/9.9"])(
    "gate responds 505 to HTTP version %s without calling the app",
    async (version) => {
      gate = await openGate(OPEN);
      const { status, text } = await sendRaw(gate.port, get("/a", version));
      expect(status).toBe(505);
      expectOurs(text, "http_version_not_supported");
      expect(gate.app.seen).toEqual([]);
    },
  );

  test.each(["http/1.1", "HTTP/1", "HTTP/1.1.1", "HTTP/11", "HTTP/1.1 x", "FTP/1.1", "HTTP/-1.1", ""])(
    "gate responds 400 to invalid HTTP version %j without calling the app",
    async (version) => {
      gate = await openGate(OPEN);
      const { status } = await sendRaw(gate.port, get("/a", version));
      expect([400, 505]).toContain(status);
      expect(gate.app.seen).toEqual([]);
    },
  );

  test("gate never forwards the HTTP/2 connection preface on an HTTP/1.1 connection", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestHeadMs: 200 } });
    const { text } = await sendRaw(gate.port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(statuses(text)).not.toContain(200);
    expect(gate.app.seen).toEqual([]);
  });
});

describe("a malformed request after valid ones", () => {
  test.each([1, 3])("gate responds to a malformed request after the responses to %i earlier requests", async (good) => {
    const asked = await openSlowly();
    const { socket, read } = open();
    socket.write(`${get("/good").repeat(good)}nonsense\r\n\r\nmore nonsense\r\n\r\n`);
    for (let i = 0; i < good; i++) {
      await waitFor("the app to be asked", () => asked.length === i + 1);
      expect(statuses(read())).toEqual(Array.from({ length: i }, () => 200));
      asked[i]?.end(`answer ${i}`);
    }
    await once(socket, "end");
    expect(statuses(read())).toEqual([...Array.from({ length: good }, () => 200), 400]);
    expectOurs(read(), "malformed_request");
    for (let i = 0; i < good; i++) expect(read()).toContain(`answer ${i}`);
  });

  test("gate responds in order to a pipelined request with a malformed body", async () => {
    const asked = await openSlowly();
    const { socket, read } = open();
    const broken = "POST /broken HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    socket.write(get("/good") + broken);
    await waitFor("the app to be asked", () => asked.length === 1);
    asked[0]?.end("good answer");
    await once(socket, "end");
    expect(statuses(read())).toEqual([200, 400]);
    expect(asked.map(({ req }) => req.url)).toEqual(["/good"]);
  });
});

test("gate aborts the upstream request and responds 400 once when a body is malformed", async () => {
  const left = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const app = await startApp((req: IncomingMessage) => {
    req.on("error", () => left.resolve());
    req.resume();
    arrived.resolve();
  });
  gate = await openGate({ ...OPEN, app });
  const { socket, read } = open();
  socket.write("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  await arrived.promise;
  socket.write("zz\r\n");
  await left.promise;
  await once(socket, "end");
  expect(statuses(read())).toEqual([400]);
  expectOurs(read(), "malformed_request");
});

describe("a client that half-closes its connection", () => {
  test("gate sends all pending responses to a half-closed connection", async () => {
    const asked = await openSlowly({ timeouts: { halfClosedMs: 5_000 } });
    const { socket, read } = open();
    socket.end(get("/1") + get("/2"));
    await waitFor("the app to be asked", () => asked.length === 1);
    // Longer than the interval of the check of requests in flight.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    asked[0]?.end("first");
    await waitFor("the app to be asked again", () => asked.length === 2);
    asked[1]?.end("second");
    await once(socket, "end");
    expect(statuses(read())).toEqual([200, 200]);
    expect(read()).toMatch(/first[\s\S]*second$/);
  });

  test("gate streams a response to a half-closed connection while data arrives", async () => {
    const asked = await openSlowly({ timeouts: { halfClosedMs: 1_500 } });
    const { socket, read } = open();
    socket.end(get("/stream"));
    await waitFor("the app to be asked", () => asked.length === 1);
    for (let i = 0; i < 8; i++) {
      asked[0]?.write(`piece ${i};`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    asked[0]?.end("last");
    await once(socket, "end");
    expect(read()).toContain("piece 7;");
    expect(read()).toContain("last");
  });

  test("gate treats a half-closed client as disconnected when nothing can be sent", async () => {
    const asked = await openSlowly({ timeouts: { halfClosedMs: 300 } });
    open().socket.end(get("/never"));
    await waitFor("the app to be asked", () => asked.length === 1);
    await waitFor("the app to be left", () => asked[0]?.destroyed === true);
  });
});

test("gate responds 417 to an unknown Expect value without calling the app", async () => {
  gate = await openGate(OPEN);
  const request = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: miracles\r\n\r\nbody";
  const { status, text } = await sendRaw(gate.port, request);
  expect(status).toBe(417);
  expectOurs(text, "expectation_failed");
  expect(gate.app.seen).toEqual([]);
});

describe("a connection without a complete head", () => {
  test("gate closes a connection without a response when the client sent nothing", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestHeadMs: 200 } });
    const { text } = await sendRaw(gate.port);
    expect(text).toBe("");
  });

  test("gate responds 408 when the head of a request is incomplete", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestHeadMs: 200 } });
    const { status, text } = await sendRaw(gate.port, "GET / HTTP/1.1\r\nHos");
    expect(status).toBe(408);
    expectOurs(text, "request_timeout");
  });
});

describe("a client that reads its response only after sending everything", () => {
  /** Reads only after all bytes are written. */
  async function sendThenRead(head: string, bytes: number): Promise<string> {
    const { socket, read } = open();
    socket.pause();
    socket.write(head);
    const piece = Buffer.alloc(64 * 1024, "x");
    for (let sent = 0; sent < bytes && !socket.destroyed; sent += piece.length) {
      if (!socket.write(piece)) await Promise.race([once(socket, "drain"), once(socket, "close").catch(() => {})]);
    }
    socket.resume();
    await waitFor("the end", () => socket.readableEnded || socket.destroyed);
    return read();
  }

  test.each([
    { name: "without a key", head: `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${16 * MiB}\r\n\r\n`, status: 401 },
    {
      name: "malformed",
      head: `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${16 * MiB}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      status: 400,
    },
  ])("client that uploads before it reads gets the error for a large body: $name", async ({ head, status }) => {
    gate = await openGate({ config: { limits: { drainBytesMax: MiB } } });
    expect(statuses(await sendThenRead(head, 16 * MiB))).toEqual([status]);
    expect(gate.app.seen).toEqual([]);
  });

  test("client that uploads before it reads gets an early response of the app", async () => {
    const app = await startApp((_req, res) => void res.writeHead(413).end("too large"));
    gate = await openGate({ ...OPEN, app, config: { limits: { drainBytesMax: MiB } } });
    const text = await sendThenRead(`POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${16 * MiB}\r\n\r\n`, 16 * MiB);
    expect(statuses(text)).toEqual([413]);
    expect(text).toContain("too large");
  });

  test("gate still serves requests after large rejected uploads", async () => {
    gate = await openGate(OPEN);
    await sendThenRead(`POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n`, MiB);
    expect((await call(gate.port)).status).toBe(200);
  });
});
