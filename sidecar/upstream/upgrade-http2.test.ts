import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type GateOptions, openGate, startApp, type TestApp, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { freePort } from "../../test/harness/ports.ts";

/* WebSockets over HTTP/2 (RFC 8441) from a client of `node:http2` to an HTTP/1.1 app, like those over HTTP/1.1 in `upgrade.test.ts`. */

let gate: TestGate;
let sockets: WebSocketServer | undefined;
let session: ClientHttp2Session;
afterEach(async () => {
  session?.destroy();
  for (const client of sockets?.clients ?? []) client.terminate();
  sockets?.close();
  sockets = undefined;
  await gate.close();
});

/** Starts an app that echoes upgraded connections, and responds to other requests with `ok`. */
async function startEcho(): Promise<TestApp> {
  const app = await startApp((_req, res) => res.end("ok"));
  sockets = new WebSocketServer({ server: app.server, handleProtocols: (asked) => [...asked].at(-1) ?? false });
  sockets.on("connection", (socket, req) => {
    socket.send(`hello ${req.headers["x-postern-key-id"]} ${req.url} ${req.headers.authorization} ${req.headers.host}`);
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return app;
}

async function openWith(options: GateOptions): Promise<void> {
  gate = await openGate(options);
  session = connect(`http://127.0.0.1:${gate.port}`);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
}

/** RFC 6455, 1.3. */
const SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const WEBSOCKET = {
  ":method": "CONNECT",
  ":protocol": "websocket",
  ":path": "/chat?a=b",
  "sec-websocket-version": "13",
};

function ask(headers: OutgoingHttpHeaders = {}): ClientHttp2Stream {
  const stream = session.request({ ...WEBSOCKET, ...headers }, { endStream: false });
  stream.on("error", () => undefined);
  return stream;
}

const withKey = (key: string): OutgoingHttpHeaders => ({ authorization: `Bearer ${key}` });

interface Inner {
  _isServer: boolean;
  _closeTimeout: number;
  setSocket(stream: ClientHttp2Stream, head: Buffer, options: object): void;
}

/** Opens a client of `ws` on a stream in place of a connection. */
async function open(key: string, headers: OutgoingHttpHeaders = {}) {
  const stream = ask({ ...withKey(key), ...headers });
  const [response] = await once(stream, "response");
  const socket = new WebSocket(null as unknown as string, undefined, {});
  const inner = socket as unknown as Inner;
  inner._isServer = false;
  inner._closeTimeout = 10_000;
  const hello = once(socket, "message");
  inner.setSocket(stream, Buffer.alloc(0), { maxPayload: 0, allowSynchronousEvents: true, skipUTF8Validation: false });
  return { socket, stream, response, hello };
}

/** Resolves for any kind of close. */
const closeOf = (stream: ClientHttp2Stream) => new Promise((resolve) => stream.once("close", resolve));

const nothingIsUnderWay = () =>
  waitFor("nothing to be under way", async () => {
    const metrics = await gate.metrics();
    return (
      metrics.includes("postern_sidecar_in_flight 0") &&
      metrics.includes('postern_sidecar_upstream_requests{state="upgraded"} 0')
    );
  });

describe("a WebSocket over HTTP/2", () => {
  test("gate accepts a WebSocket over HTTP/2 beside other streams", async () => {
    await openWith({ app: await startEcho() });
    expect(session.remoteSettings.enableConnectProtocol).toBe(true);
    const key = await gate.records.putKey({ keyId: "key_ws" });
    const more = { "sec-websocket-protocol": "one, two", "x-postern-key-id": "forged" };
    const { socket, stream, response, hello } = await open(key, more);
    expect(response).toMatchObject({ ":status": 200, "sec-websocket-protocol": "two" });
    expect(response["x-request-id"]).toMatch(/^req_/);
    for (const name of ["sec-websocket-accept", "upgrade", "connection"]) expect(response[name]).toBeUndefined();
    expect(String((await hello)[0])).toBe(`hello key_ws /chat?a=b undefined 127.0.0.1:${gate.port}`);
    const large = Buffer.alloc(3 * 1024 * 1024, "y");
    socket.send(large);
    const [echoed] = await once(socket, "message");
    expect(Buffer.compare(echoed as Buffer, large)).toBe(0);
    const plain = session.request({ ":path": "/", ...withKey(key) });
    const [other] = await once(plain, "response");
    expect(other[":status"]).toBe(200);
    plain.resume();
    socket.close(4000, "done");
    const [code] = await once(socket, "close");
    expect(code).toBe(4000);
    await nothingIsUnderWay();
    if (!stream.closed) await once(stream, "close");
    expect(stream.rstCode).toBe(0);
  });

  test("gate answers the Sec-WebSocket-Key that a gateway forwards over HTTP/2", async () => {
    await openWith({ app: await startEcho() });
    const { response, stream } = await open(await gate.records.putKey(), {
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    });
    // RFC 6455, 1.3.
    expect(response).toMatchObject({ ":status": 200, "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" });
    stream.destroy();
    await nothingIsUnderWay();
  });

  test.each([
    { name: "without a key: 401", key: async () => "unknown", status: 401 },
    { name: "with a disabled key: 401", key: () => gate.records.putKey({ enabled: false }), status: 401 },
  ])("gate rejects a WebSocket over HTTP/2 $name without calling the app", async ({ key, status }) => {
    await openWith({ app: await startEcho() });
    const stream = ask(withKey(await key()));
    const [response] = await once(stream, "response");
    expect(response).toMatchObject({ ":status": status, "www-authenticate": expect.stringContaining("Bearer") });
    expect(sockets?.clients.size).toBe(0);
    stream.end();
    await nothingIsUnderWay();
  });

  test.each([
    ["for another protocol", { ":protocol": "connect-udp" }, false],
    ["that ends with its head", {}, true],
    ["with the length of a body", { "content-length": "4" }, false],
  ])("gate responds 400 to an extended CONNECT %s", async (_name, headers, endStream) => {
    await openWith({ app: await startEcho() });
    const key = await gate.records.putKey();
    const stream = session.request({ ...WEBSOCKET, ...withKey(key), ...headers }, { endStream });
    stream.on("error", () => undefined);
    const [response] = await once(stream, "response");
    expect(response[":status"]).toBe(400);
    expect(sockets?.clients.size).toBe(0);
  });

  test("gate forwards a declined WebSocket over HTTP/2 and keeps the connection", async () => {
    const app = await startApp((_req, res) => res.end("ok"));
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nX-Why: because\r\n\r\nnope");
    });
    await openWith({ app });
    const key = await gate.records.putKey();
    const stream = ask(withKey(key));
    let body = "";
    stream.on("data", (bytes: Buffer) => {
      body += bytes;
    });
    const [response] = await once(stream, "response");
    expect(response).toMatchObject({ ":status": 403, "x-why": "because" });
    await once(stream, "end");
    expect(body).toBe("nope");
    const [other] = await once(session.request({ ":path": "/", ...withKey(key) }), "response");
    expect(other[":status"]).toBe(200);
    await nothingIsUnderWay();
  });

  test("gate responds 502 over HTTP/2 when Sec-WebSocket-Accept is wrong", async () => {
    const app = await startApp();
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.on("error", () => {}).on("end", () => socket.end());
      socket.resume();
      const lines =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`);
    });
    await openWith({ app });
    const [response] = await once(ask(withKey(await gate.records.putKey())), "response");
    expect(response[":status"]).toBe(502);
    await nothingIsUnderWay();
  });

  test("WebSocket over HTTP/2 gets 502 if the app is unreachable and 504 on timeout", async () => {
    await openWith({ config: { upstream: `http://127.0.0.1:${await freePort()}` } });
    const [first] = await once(ask(withKey(await gate.records.putKey())), "response");
    expect(first[":status"]).toBe(502);
    session.destroy();
    await gate.close();
    const app = await startApp();
    app.server.on("upgrade", (_req, socket: Socket) => socket.on("end", () => socket.end()).resume());
    await openWith({ app, timeouts: { headersMs: 100 } });
    const [second] = await once(ask(withKey(await gate.records.putKey())), "response");
    expect(second[":status"]).toBe(504);
  });

  test("closing either side of a WebSocket over HTTP/2 closes the other side", async () => {
    await openWith({ app: await startEcho() });
    const key = await gate.records.putKey();
    const first = await open(key);
    await first.hello;
    const [atApp] = sockets?.clients ?? [];
    const left = atApp && once(atApp, "close");
    first.stream.close(constants.NGHTTP2_CANCEL);
    await left;
    const [second, third] = [await open(key), await open(key)];
    await Promise.all([second.hello, third.hello]);
    const closed = once(second.stream, "close");
    [...(sockets?.clients ?? [])][0]?.terminate();
    await closed;
    third.socket.send("still there");
    const [echoed] = await once(third.socket, "message");
    expect(String(echoed)).toBe("still there");
    third.stream.destroy();
    await nothingIsUnderWay();
  });

  test("client disconnect before a WebSocket upgrade over HTTP/2 leaks no resources", async () => {
    const app = await startApp();
    const asked = Promise.withResolvers<Socket>();
    app.server.on("upgrade", (_req, socket: Socket) => asked.resolve(socket.on("end", () => socket.end()).resume()));
    await openWith({ app });
    const stream = ask(withKey(await gate.records.putKey()));
    const atApp = await asked.promise;
    stream.close(constants.NGHTTP2_CANCEL);
    await once(atApp, "close");
    await nothingIsUnderWay();
  });

  test("each side of a WebSocket over HTTP/2 applies backpressure to the other", async () => {
    const app = await startApp();
    const atApp = Promise.withResolvers<Socket>();
    app.server.on("upgrade", (req, socket: Socket) => {
      const accept = createHash("sha1").update(`${req.headers["sec-websocket-key"]}${SUFFIX}`).digest("base64");
      const lines = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n`;
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`);
      atApp.resolve(socket.pause());
    });
    await openWith({ app });
    const stream = ask(withKey(await gate.records.putKey()));
    const deaf = await atApp.promise;
    let taken = 0;
    const piece = Buffer.alloc(64 * 1024);
    const more = (): void => {
      while (taken < 64 * 1024 * 1024 && stream.write(piece, () => (taken += piece.length))) {}
    };
    stream.on("drain", more);
    more();
    let last = -1;
    await waitFor(
      "the client to be held back",
      () => {
        const isStill = taken === last;
        last = taken;
        return isStill;
      },
      { everyMs: 500 },
    );
    expect(taken).toBeLessThan(32 * 1024 * 1024);
    stream.destroy();
    // Buffered data of the kernel and Node is read before the end.
    deaf.on("error", () => undefined).on("end", () => deaf.end());
    deaf.resume();
    await once(deaf, "close");
    await nothingIsUnderWay();
  });
});

describe("an open connection", () => {
  test("WebSocket over HTTP/2 is closed when its key is revoked", async () => {
    await openWith({ app: await startEcho(), timeouts: { recheckMs: 50 } });
    const key = await gate.records.putKey();
    const stays = await open(await gate.records.putKey());
    const goes = await open(key);
    await Promise.all([stays.hello, goes.hello]);
    const closed = closeOf(goes.stream);
    await gate.records.putKey({ enabled: false }, key);
    await closed;
    expect(goes.stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect(stays.socket.readyState).toBe(WebSocket.OPEN);
    expect(await gate.metrics()).toContain("postern_sidecar_connections_revoked_total 1");
    stays.stream.destroy();
    await nothingIsUnderWay();
  });

  test("silent WebSocket over HTTP/2 stays open up to the WebSocket idle timeout", async () => {
    await openWith({
      app: await startEcho(),
      timeouts: { requestBodyIdleMs: 50, bodyIdleMs: 50, tunnelIdleMs: 1_500 },
    });
    const { hello, stream } = await open(await gate.records.putKey());
    await hello;
    const startedMs = performance.now();
    await closeOf(stream);
    expect(performance.now() - startedMs).toBeGreaterThan(1_400);
  });

  test("gate shutdown waits for a WebSocket over HTTP/2, then closes it", async () => {
    await openWith({ app: await startEcho(), timeouts: { closeMs: 500 } });
    const { socket, stream, hello } = await open(await gate.records.putKey());
    await hello;
    const closing = gate.sidecar.close();
    await once(session, "goaway");
    socket.send("still there");
    const [echoed] = await once(socket, "message");
    expect(String(echoed)).toBe("still there");
    const closed = closeOf(stream);
    await Promise.all([closing, closed]);
  });
});
