import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect as connectSocket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  aRule,
  call,
  type GateOptions,
  OPEN,
  openGate,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";

/* HTTP/2 by prior knowledge on the HTTP/1.1 port, with clients of `node:http2`. */

let gate: TestGate;
let sessions: ClientHttp2Session[] = [];
afterEach(async () => {
  for (const session of sessions) session.destroy();
  sessions = [];
  await gate.close();
});

function open(): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${gate.port}`);
  session.on("error", () => undefined);
  sessions.push(session);
  return session;
}

interface HttpResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: string;
  readonly rstCode: number | undefined;
}

/** Resolves for any kind of close of the stream. */
function responseOf(stream: ClientHttp2Stream): Promise<HttpResponse> {
  return new Promise((resolve) => {
    let headers: IncomingHttpHeaders & { ":status"?: number | undefined } = {};
    let trailers: IncomingHttpHeaders | undefined;
    let body = "";
    stream.on("response", (received) => {
      headers = received;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (bytes: Buffer) => {
      body += bytes.toString();
    });
    stream.on("error", () => undefined);
    stream.once("close", () =>
      resolve({ status: headers[":status"], headers, trailers, body, rstCode: stream.rstCode }),
    );
  });
}

function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders = {},
  body?: string | Buffer,
): Promise<HttpResponse> {
  const stream = session.request({ ":path": "/", ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return responseOf(stream);
}

async function openWith(listener: (req: IncomingMessage, res: ServerResponse) => void, options: GateOptions = {}) {
  gate = await openGate({ ...OPEN, ...options, app: await startApp(listener) });
}

describe("a request", () => {
  test("gate forwards an HTTP/2 request with a valid key as HTTP/1.1 without the key", async () => {
    gate = await openGate();
    const key = await gate.records.putKey({ keyId: "key_two" });
    const session = open();
    const headers = { ":method": "POST", ":path": "/a?b=c", authorization: `Bearer ${key}`, te: "trailers" };
    const response = await ask(session, { ...headers, cookie: ["a=1", "b=2"], "x-postern-key-id": "forged" }, "hello");
    expect(response).toMatchObject({ status: 200, body: "ok" });
    expect(response.headers["x-request-id"]).toMatch(/^req_/);
    expect(response.headers.connection).toBeUndefined();
    const [seen] = gate.app.seen;
    expect(seen).toMatchObject({ method: "POST", url: "/a?b=c", body: "hello" });
    expect(seen?.headers).toMatchObject({
      host: `127.0.0.1:${gate.port}`,
      cookie: "a=1; b=2",
      "x-postern-key-id": "key_two",
    });
    expect(seen?.headers.te).toBeUndefined();
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain(key);
  });

  test("gate rejects an HTTP/2 request without a key and keeps the connection open", async () => {
    gate = await openGate();
    const session = open();
    const [first, second] = await Promise.all([ask(session, {}, "body that nobody reads"), ask(session)]);
    for (const { status, headers, body } of [first, second]) {
      expect(status).toBe(401);
      expect(headers["www-authenticate"]).toContain("Bearer");
      expect(JSON.parse(body).error.type).toContain("/errors/unauthorized");
    }
    expect(gate.app.seen).toEqual([]);
    const key = await gate.records.putKey();
    expect((await ask(session, { authorization: `Bearer ${key}` })).status).toBe(200);
  });

  test("gate serves HTTP/1.1 and HTTP/2 on the same port", async () => {
    gate = await openGate(OPEN);
    expect((await ask(open())).status).toBe(200);
    expect((await call(gate.port)).status).toBe(200);
  });

  test("gate accepts an HTTP/2 preface that arrives byte by byte", async () => {
    gate = await openGate(OPEN);
    const socket = connectSocket({ host: "127.0.0.1", port: gate.port });
    await once(socket, "connect");
    const received: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => received.push(bytes));
    for (const byte of Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) {
      socket.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    // An empty SETTINGS; the gate responds with its own, and an acknowledgement.
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    const ack = Buffer.from([0, 0, 0, 4, 1, 0, 0, 0, 0]);
    await waitFor("the acknowledgement", () => Buffer.concat(received).includes(ack));
    socket.destroy();
  });

  test("gate sends 100 Continue over HTTP/2 only after a valid key", async () => {
    gate = await openGate();
    const session = open();
    const refused = await ask(session, { ":method": "POST", expect: "100-continue", "content-length": 5 }, "hello");
    expect(refused.status).toBe(401);
    const key = await gate.records.putKey();
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/", expect: "100-continue", "content-length": 5 },
      authorization: `Bearer ${key}`,
    });
    const response = responseOf(stream);
    await once(stream, "continue");
    stream.end("hello");
    expect((await response).status).toBe(200);
    expect(gate.app.seen[0]?.body).toBe("hello");
  });
});

describe("a request that HTTP/1.1 cannot express", () => {
  test.each<[string, OutgoingHttpHeaders]>([
    ["a space in the path", { ":path": "/a HTTP/1.1" }],
    ["an unknown method", { ":method": "get" }],
    ["two different hosts", { ":authority": "a.test", host: "b.test" }],
    ["a head that is too long", { "x-long": "a".repeat(17_000) }],
  ])("gate rejects an HTTP/2 request without calling the app: %s", async (_name, headers) => {
    gate = await openGate({ policy: { ...OPEN.policy, mode: "Audit" } });
    const session = open();
    const { status, rstCode } = await ask(session, headers);
    expect(status ?? 400).toBe(400);
    if (status === undefined) expect(rstCode).not.toBe(constants.NGHTTP2_NO_ERROR);
    expect(gate.app.seen).toEqual([]);
    expect((await ask(session)).status).toBe(200);
  });

  test("gate rejects an HTTP/2 request with more headers than the app accepts", async () => {
    gate = await openGate(OPEN);
    const many = Object.fromEntries(Array.from({ length: 505 }, (_, at) => [`x-${at}`, "1"]));
    expect((await ask(open(), many)).status ?? 400).toBe(400);
    expect(gate.app.seen).toEqual([]);
  });
});

describe("a response", () => {
  test("HTTP/2 response keeps trailers, repeated headers and early hints", async () => {
    await openWith((_req, res) => {
      res.writeEarlyHints({ link: "</a.css>; rel=preload" });
      res.writeHead(200, [
        ...["set-cookie", "a=1", "set-cookie", "b=2", "connection", "x-hop", "x-hop", "1"],
        ...["trailer", "grpc-status, x-sum", "content-type", "text/plain"],
      ]);
      res.write("part");
      res.addTrailers({ "grpc-status": "0", "x-sum": "abc" });
      res.end();
    });
    const session = open();
    const stream = session.request({ ":path": "/" });
    const response = responseOf(stream);
    const [early] = await once(stream, "headers");
    expect(early).toMatchObject({ ":status": 103, link: "</a.css>; rel=preload" });
    const { headers, trailers, body } = await response;
    expect(headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "content-type": "text/plain" });
    expect(headers["x-hop"]).toBeUndefined();
    expect(trailers).toMatchObject({ "grpc-status": "0", "x-sum": "abc" });
    expect(body).toBe("part");
  });

  test.each(["HEAD", "GET"])("HTTP/2 response without content to %s ends with its HEADERS frame", async (method) => {
    await openWith((_req, res) => {
      res.writeHead(method === "HEAD" ? 200 : 204).end();
    });
    const response = await ask(open(), { ":method": method });
    expect(response).toMatchObject({ status: method === "HEAD" ? 200 : 204, body: "", rstCode: 0 });
  });

  test("gate responds 502 over HTTP/2 for an upstream status that HTTP/2 cannot represent", async () => {
    await openWith((_req, res) => void res.writeHead(799).end("odd"));
    const session = open();
    expect((await ask(session)).status).toBe(502);
    expect((await ask(session)).status).toBe(502);
    expect((await call(gate.port)).status).toBe(799);
    expect(await gate.metrics()).toContain('postern_sidecar_internal_errors_total{source="exchange"} 0');
  });

  test("gate resets only the HTTP/2 stream whose upstream response is truncated", async () => {
    await openWith((req, res) => {
      if (req.url === "/whole") {
        res.end("whole");
        return;
      }
      res.writeHead(200, { "content-type": "text/plain" });
      res.write("part");
      setTimeout(() => res.destroy(), 20);
    });
    const session = open();
    const broken = await ask(session, { ":path": "/broken" });
    expect(broken).toMatchObject({ status: 200, rstCode: constants.NGHTTP2_INTERNAL_ERROR });
    expect((await ask(session, { ":path": "/whole" })).body).toBe("whole");
  });

  test("gate streams request and response bodies over HTTP/2 concurrently", async () => {
    await openWith((req, res) => {
      req.on("data", (bytes: Buffer) => res.write(`<${bytes}>`));
      req.on("end", () => res.end());
    });
    const stream = open().request({ ":method": "POST", ":path": "/" });
    let text = "";
    stream.on("data", (bytes: Buffer) => {
      text += bytes.toString();
    });
    for (const word of ["one", "two", "three"]) {
      stream.write(word);
      await waitFor(`the echo of ${word}`, () => text.endsWith(`<${word}>`));
    }
    stream.end();
    await once(stream, "close");
    expect(stream.rstCode).toBe(0);
  });

  // Up to 65,535 bytes, the initial window of a stream, a body may arrive complete in one turn of the event loop.
  test.each([1, 16_384, 16_385, 40_000, 65_535, 65_536])(
    "gate forwards a complete HTTP/2 upload of %i bytes",
    async (bytes) => {
      gate = await openGate(OPEN);
      const session = open();
      const uploads = Array.from({ length: 5 }, (_, i) =>
        ask(session, { ":method": "POST" }, Buffer.alloc(bytes, 97 + i)),
      );
      for (const { status } of await Promise.all(uploads)) expect(status).toBe(200);
      const bodies = gate.app.seen.map(({ body }) => body).sort();
      expect(bodies).toEqual(["a", "b", "c", "d", "e"].map((letter) => letter.repeat(bytes)));
    },
  );

  test("gate transfers 8 MiB in each direction over HTTP/2", async () => {
    await openWith((req, res) => void req.pipe(res));
    const body = Buffer.alloc(8 * 1024 * 1024, "0123456789");
    const response = await ask(open(), { ":method": "POST" }, body);
    expect(response.status).toBe(200);
    expect(response.body === body.toString()).toBe(true);
  });

  test("unread HTTP/2 response pauses the app without blocking other streams", async () => {
    let written = 0;
    await openWith((req, res) => {
      if (req.url !== "/large") {
        res.end("ok");
        return;
      }
      const piece = Buffer.alloc(64 * 1024);
      const more = (): void => {
        while (written < 256 * 1024 * 1024) {
          written += piece.length;
          if (!res.write(piece)) break;
        }
      };
      res.on("drain", more).on("error", () => undefined);
      more();
    });
    const session = open();
    const slow = session.request({ ":path": "/large" });
    slow.on("error", () => undefined).pause();
    await once(slow, "response");
    let last = -1;
    await waitFor("the app to be paused", async () => {
      const isStill = last === written;
      last = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return isStill;
    });
    expect(written).toBeLessThan(64 * 1024 * 1024);
    expect((await ask(session)).body).toBe("ok");
  });

  test("gate resets an HTTP/2 stream after a timeout if its response is not read", async () => {
    await openWith((_req, res) => void res.end(Buffer.alloc(4 * 1024 * 1024)), { timeouts: { responseReadMs: 200 } });
    const slow = open().request({ ":path": "/" });
    slow.on("error", () => undefined).pause();
    await once(slow, "response");
    await waitFor("the stream to be reset", () => slow.closed);
    expect(slow.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  });

  test("gate aborts the upstream request when the client resets its HTTP/2 stream", async () => {
    let isDeleted = false;
    await openWith((_req, res) => {
      res.writeHead(200).write("part");
      res.once("close", () => {
        isDeleted = true;
      });
    });
    const stream = open().request({ ":path": "/" });
    stream.on("error", () => undefined).resume();
    await once(stream, "response");
    stream.close(constants.NGHTTP2_CANCEL);
    await waitFor("the app to hear of it", () => isDeleted);
  });

  test("gate resets an HTTP/2 response stream when its key is revoked", async () => {
    gate = await openGate({
      app: await startApp((_req, res) => void res.writeHead(200).write("part")),
      timeouts: { recheckMs: 50 },
    });
    const key = await gate.records.putKey();
    const stream = open().request({ ":path": "/", authorization: `Bearer ${key}` });
    const response = responseOf(stream);
    await once(stream, "response");
    await gate.records.deleteKey(key);
    expect(await response).toMatchObject({ status: 200, rstCode: constants.NGHTTP2_INTERNAL_ERROR });
  });
});

describe("a gRPC client", () => {
  const grpc = { ":method": "POST", "content-type": "application/grpc+proto", te: "trailers" };

  test.each([
    { name: "no key", headers: {}, code: "16" },
    { name: "a key without a permission", headers: undefined, code: "7" },
  ])("gRPC request with $name gets a trailers-only response with grpc-status $code", async ({ headers, code }) => {
    gate = await openGate({ policy: { rules: [aRule({ permissions: "orders.read" })] } });
    const key = await gate.records.putKey();
    const response = await ask(open(), { ...grpc, ...(headers ?? { authorization: `Bearer ${key}` }) }, "");
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ "content-type": "application/grpc", "grpc-status": code });
    expect(response.headers["grpc-message"]).toMatch(/API key/);
    expect(response.headers["x-request-id"]).toMatch(/^req_/);
    expect(response).toMatchObject({ body: "", trailers: undefined, rstCode: 0 });
  });

  test("unreachable app gives grpc-status 14 to gRPC clients and 502 to others", async () => {
    gate = await openGate(OPEN);
    await gate.app.close();
    expect((await ask(open(), grpc, "")).headers["grpc-status"]).toBe("14");
    expect((await call(gate.port, { headers: { "content-type": "application/grpc" } })).status).toBe(502);
  });
});

describe("a connection", () => {
  test("one HTTP/2 connection carries 10,000 requests", async () => {
    gate = await openGate(OPEN);
    const session = open();
    await once(session, "remoteSettings");
    let left = 10_000;
    let good = 0;
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if ((await ask(session)).status === 200) good += 1;
      }
    };
    await Promise.all(Array.from({ length: 100 }, worker));
    expect(good).toBe(10_000);
  });

  test("one HTTP/2 connection carries 100 concurrent requests", async () => {
    gate = await openGate(OPEN);
    const session = open();
    await once(session, "remoteSettings");
    expect(session.remoteSettings.maxConcurrentStreams).toBe(100);
    expect(session.remoteSettings.enablePush).toBe(false);
  });

  test("gate sends ENHANCE_YOUR_CALM to a client that repeatedly resets its streams", async () => {
    await openWith((req, res) => {
      if (req.url === "/quick") res.end("ok");
    });
    const session = open();
    const told = once(session, "goaway");
    let isOver = false;
    session.once("close", () => {
      isOver = true;
    });
    let sent = 0;
    const flood = (): void => {
      for (let at = 0; at < 50 && !session.destroyed; at += 1, sent += 1) {
        const stream = session.request({ ":path": "/slow" });
        stream.on("error", () => undefined);
        stream.close(constants.NGHTTP2_CANCEL);
      }
      if (!isOver && sent < 20_000) setImmediate(flood);
    };
    flood();
    const [code] = await told;
    expect(code).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(sent).toBeLessThan(20_000);
    expect((await ask(open(), { ":path": "/quick" })).status).toBe(200);
  });

  test.each([
    ["PING", Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])],
    ["SETTINGS", Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])],
  ])("gate closes an HTTP/2 connection that floods it with %s", async (_name, frame) => {
    gate = await openGate(OPEN);
    const socket = connectSocket({ host: "127.0.0.1", port: gate.port });
    let isClosed = false;
    socket
      .on("error", () => undefined)
      .on("close", () => {
        isClosed = true;
      });
    socket.resume();
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    for (let at = 0; at < 100 && !isClosed; at += 1) {
      socket.write(Buffer.concat(Array.from({ length: 50 }, () => frame)));
      await new Promise(setImmediate);
    }
    await waitFor("the connection to be closed", () => isClosed);
    expect((await call(gate.port)).status).toBe(200);
  });

  test("gate closes an idle HTTP/2 connection", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestHeadMs: 100, keepAliveMs: 200 } });
    const silent = open();
    const used = open();
    const silentClosed = once(silent, "close");
    const usedClosed = once(used, "close");
    expect((await ask(used)).status).toBe(200);
    await Promise.all([silentClosed, usedClosed]);
  });

  test("gate shutdown sends GOAWAY and completes open HTTP/2 streams", async () => {
    let finish: (() => void) | undefined;
    await openWith((req, res) => {
      if (req.url === "/slow") finish = () => void res.end("done");
      else res.end("ok");
    });
    const session = open();
    const told = once(session, "goaway");
    const slow = ask(session, { ":path": "/slow" });
    await waitFor("the app to be asked", () => finish !== undefined);
    const closing = gate.sidecar.close();
    const [code] = await told;
    expect(code).toBe(constants.NGHTTP2_NO_ERROR);
    finish?.();
    expect(await slow).toMatchObject({ status: 200, body: "done", rstCode: 0 });
    await closing;
  });
});
