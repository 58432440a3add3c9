import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import {
  call,
  openGate,
  readAll,
  sendRaw,
  startApp,
  type TestApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";
import { freePort } from "../../test/harness/ports.ts";

let gate: TestGate;
let sockets: WebSocketServer | undefined;
afterEach(async () => {
  for (const client of sockets?.clients ?? []) client.terminate();
  sockets?.close();
  sockets = undefined;
  await gate.close();
});

/** Starts an app that echoes. */
async function startEcho(): Promise<TestApp> {
  const app = await startApp((_req, res) => res.writeHead(426).end("speak WebSocket"));
  sockets = new WebSocketServer({ server: app.server });
  sockets.on("connection", (socket, req) => {
    socket.send(`hello ${req.headers["x-postern-key-id"]} ${req.url} ${req.headers.authorization}`);
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return app;
}

const open = (key: string, path = "/chat?a=b"): WebSocket =>
  new WebSocket(`ws://127.0.0.1:${gate.port}${path}`, { headers: { Authorization: `Bearer ${key}` } });

const handshake = (...headers: string[]): string =>
  `${[
    "GET /chat HTTP/1.1",
    "Host: a",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  ].join("\r\n")}\r\n\r\n`;

describe("a WebSocket", () => {
  test("gate forwards WebSocket data in both directions after a decision", async () => {
    gate = await openGate({ app: await startEcho() });
    const socket = open(await gate.records.putKey({ keyId: "key_ws" }));
    const [hello] = await once(socket, "message");
    expect(String(hello)).toBe("hello key_ws /chat?a=b undefined");
    const large = Buffer.alloc(3 * 1024 * 1024, "y");
    socket.send(large);
    const [echoed] = await once(socket, "message");
    expect(Buffer.compare(echoed as Buffer, large)).toBe(0);
    socket.close(4000, "done");
    const [code] = await once(socket, "close");
    expect(code).toBe(4000);
    await waitFor("nothing to be under way", async () =>
      (await gate.metrics()).includes("postern_sidecar_in_flight 0"),
    );
  });

  test.each([
    { name: "without a key: 401", key: async () => "unknown", status: 401 },
    { name: "with a disabled key: 401", key: () => gate.records.putKey({ enabled: false }), status: 401 },
  ])("gate rejects a WebSocket upgrade $name without calling the app", async ({ key, status }) => {
    gate = await openGate({ app: await startEcho() });
    const socket = open(await key());
    const [, response] = await once(socket, "unexpected-response");
    expect(response.statusCode).toBe(status);
    expect(response.headers["www-authenticate"]).toContain("Bearer");
    expect(sockets?.clients.size).toBe(0);
    response.destroy();
  });

  test("bytes directly after the WebSocket handshake are kept on both sides", async () => {
    const app = await startApp();
    const got: string[] = [];
    app.server.on("upgrade", (_req, socket: Socket, head: Buffer) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfrom the app");
      got.push(head.toString());
      socket.on("data", (chunk: Buffer) => void got.push(chunk.toString()));
      socket.on("end", () => socket.end("last word"));
    });
    gate = await openGate({ app });
    const socket = connect({ port: gate.port, host: "127.0.0.1", allowHalfOpen: true });
    const read = readAll(socket);
    const closed = once(socket, "close");
    socket.write(`${handshake(`X-API-Key: ${await gate.records.putKey()}`)}from the client`);
    await waitFor("both", () => read().endsWith("from the app") && got.join("") === "from the client");
    // The client half-closes; the app may still respond.
    socket.end();
    await closed;
    expect(read()).toMatch(/last word$/);
  });

  test("gate forwards the response of an app that declines a WebSocket", async () => {
    const app = await startApp();
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nX-Why: because\r\n\r\nnope");
    });
    gate = await openGate({ app });
    const { status, text } = await sendRaw(gate.port, handshake(`X-API-Key: ${await gate.records.putKey()}`));
    expect(status).toBe(403);
    expect(text).toMatch(/^x-why: because\r$/im);
    expect(text).toMatch(/\r\n\r\nnope$/);
  });

  test("WebSocket upgrade gets 502 if the app is unreachable and 504 on timeout", async () => {
    gate = await openGate({ config: { upstream: `http://127.0.0.1:${await freePort()}` } });
    expect((await sendRaw(gate.port, handshake(`X-API-Key: ${await gate.records.putKey()}`))).status).toBe(502);
    await gate.close();
    const app = await startApp();
    app.server.on("upgrade", (_req, socket: Socket) => socket.on("end", () => socket.end()).resume());
    gate = await openGate({ app, timeouts: { headersMs: 100 } });
    expect((await sendRaw(gate.port, handshake(`X-API-Key: ${await gate.records.putKey()}`))).status).toBe(504);
  });

  test("an error on either side of a WebSocket closes the other", async () => {
    gate = await openGate({ app: await startEcho() });
    const key = await gate.records.putKey();
    const first = open(key);
    await once(first, "message");
    const [atApp] = sockets?.clients ?? [];
    const left = atApp && once(atApp, "close");
    first.terminate();
    await left;
    const second = open(key);
    await once(second, "message");
    for (const client of sockets?.clients ?? []) client.terminate();
    await once(second, "close");
  });
});

describe("a half-closed WebSocket", () => {
  let atApp: Socket;
  let client: Socket;
  /** Opens a connection whose both sides the test ends. */
  async function openBoth(): Promise<void> {
    const app = await startApp();
    const asked = Promise.withResolvers<Socket>();
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      asked.resolve(socket.resume());
    });
    gate = await openGate({ app, timeouts: { halfClosedMs: 1_500, recheckMs: 50 } });
    client = connect({ port: gate.port, host: "127.0.0.1", allowHalfOpen: true });
    client.on("error", () => {}).resume();
    client.write(handshake(`X-API-Key: ${await gate.records.putKey()}`));
    atApp = await asked.promise;
  }
  afterEach(() => {
    client.destroy();
    atApp.destroy();
  });
  const isOpen = async (): Promise<boolean> =>
    !(await gate.metrics()).includes('postern_sidecar_upstream_requests{state="upgraded"} 0');

  test.each(["client", "app"] as const)(
    "half-closed WebSocket is closed after a timeout, because the %s may have disconnected",
    async (which) => {
      await openBoth();
      (which === "client" ? client : atApp).end();
      await waitFor("its place to be free", async () => !(await isOpen()));
    },
  );

  test("half-closed WebSocket stays open while the other side sends data", async () => {
    await openBoth();
    const untilMs = performance.now() + 4_000;
    client.end();
    while (performance.now() < untilMs) {
      atApp.write("more");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await isOpen()).toBe(true);
    atApp.end("last word");
    await once(client, "close");
  });
});

describe("periodic checks of open connections", () => {
  test("open WebSocket is closed when its key is revoked", async () => {
    gate = await openGate({ app: await startEcho(), timeouts: { recheckMs: 50 } });
    const key = await gate.records.putKey();
    const stays = open(await gate.records.putKey());
    const goes = open(key);
    await Promise.all([once(stays, "message"), once(goes, "message")]);
    const closed = once(goes, "close");
    await gate.records.putKey({ enabled: false }, key);
    await closed;
    expect(stays.readyState).toBe(WebSocket.OPEN);
    expect(await gate.metrics()).toContain("postern_sidecar_connections_revoked_total 1");
    stays.terminate();
    await once(stays, "close");
  });

  test("streaming response is aborted when its key is revoked", async () => {
    const app = await startApp((_req, res) => void res.write("more to come"));
    gate = await openGate({ app, timeouts: { recheckMs: 50 } });
    const key = await gate.records.putKey();
    const response = call(gate.port, { headers: { "X-API-Key": key } });
    const failed = expect(response).rejects.toThrow();
    await waitFor("the request to be under way", async () =>
      (await gate.metrics()).includes("postern_sidecar_in_flight 1"),
    );
    await gate.records.deleteKey(key);
    await failed;
  });
});

describe("other upgrades", () => {
  test("gate ignores an h2c upgrade and serves the request normally", async () => {
    gate = await openGate();
    const key = await gate.records.putKey();
    const request = `GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\nX-API-Key: ${key}\r\n\r\n`;
    expect((await sendRaw(gate.port, request)).status).toBe(200);
    expect(gate.app.seen[0]?.headers).not.toHaveProperty("http2-settings");
    expect(gate.app.seen[0]?.headers).not.toHaveProperty("upgrade");
  });

  test("gate ignores an HTTP/1.0 upgrade and serves the request normally", async () => {
    gate = await openGate();
    const request = handshake(`X-API-Key: ${await gate.records.putKey()}`).replace("HTTP/1.1", "HTTP/1.0");
    expect((await sendRaw(gate.port, request)).text).toMatch(/\r\n\r\nok$/);
    expect(gate.app.seen[0]?.headers).not.toHaveProperty("upgrade");
  });

  test("gate responds 400 to an upgrade request with a body", async () => {
    gate = await openGate({ app: await startEcho() });
    const key = await gate.records.putKey();
    const { status } = await sendRaw(gate.port, `${handshake(`X-API-Key: ${key}`, "Content-Length: 4")}body`);
    expect(status).toBe(400);
  });
});

test("client disconnect during an upgrade leaks no resources", async () => {
  const app = createServer();
  const asked = Promise.withResolvers<Socket>();
  app.on("upgrade", (_req, socket: Socket) => asked.resolve(socket.on("end", () => socket.end())));
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  gate = await openGate({ config: { upstream: `http://127.0.0.1:${(app.address() as AddressInfo).port}` } });
  const client = connect(gate.port, "127.0.0.1");
  client.write(handshake(`X-API-Key: ${await gate.records.putKey()}`));
  const atApp = await asked.promise;
  atApp.resume();
  client.destroy();
  await once(atApp, "close");
  app.close();
});
