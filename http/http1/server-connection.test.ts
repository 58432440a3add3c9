import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import type { ParseError } from "./message-parser.ts";
import { HttpServer } from "./server.ts";
import type { ServerExchange } from "./server-exchange.ts";

/* The server alone: how it handles the connections of its clients. */

interface Opened {
  readonly exchanges: ServerExchange[];
  readonly faults: Array<ParseError | "late">;
  readonly thrown: unknown[];
  /** The server's side of the connections. */
  readonly sockets: Socket[];
  readonly dial: (bytes?: string) => Client;
  readonly server: HttpServer;
}

interface Client {
  readonly socket: Socket;
  readonly text: () => string;
}

let opened: Opened;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await opened.server.close(
    0,
    () => false,
    () => undefined,
  );
});

const LIMITS = {
  headBytesMax: 16 * 1024,
  requestHeadMs: 10_000,
  keepAliveMs: 10_000,
  drainBytesMax: 64 * 1024,
  responseReadMs: 10_000,
  clientConnectionsMax: 10_000,
  clientHttp2ConnectionsMax: 1_000,
};

async function open(
  onRequest: (exchange: ServerExchange) => void = () => undefined,
  limits: Partial<typeof LIMITS> = {},
): Promise<void> {
  const exchanges: ServerExchange[] = [];
  const faults: Array<ParseError | "late"> = [];
  const thrown: unknown[] = [];
  const sockets: Socket[] = [];
  const server = new HttpServer(
    { ...LIMITS, ...limits },
    {
      connected: (socket) => sockets.push(socket),
      request: (exchange) => {
        exchanges.push(exchange);
        onRequest(exchange);
      },
      malformed: (fault, connection, exchange) => {
        faults.push(fault);
        if (exchange === undefined) connection.endReading();
        else exchange.socket.destroy();
      },
      isClosing: () => false,
      onDiscarded: () => undefined,
      http2: () => {
        throw new Error("no client here speaks HTTP/2");
      },
      refuseHttp2: (socket) => socket.destroy(),
      sharerOf: () => undefined,
      mayAcquire: () => true,
      onLimitReached: () => undefined,
      onInternalError: (error) => thrown.push(error),
    },
  );
  const port = Number(new URL(await server.listen({ host: "127.0.0.1", port: 0 })).port);
  const dial = (bytes = ""): Client => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    clients.push(socket);
    let text = "";
    socket.on("error", () => undefined).on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    if (bytes !== "") socket.write(bytes, "latin1");
    return { socket, text: () => text };
  };
  opened = { exchanges, faults, thrown, sockets, dial, server };
}

function respond(exchange: ServerExchange, content: string | Buffer = "ok"): void {
  const bytes = Buffer.from(content);
  const lines = `content-length: ${bytes.length}\r\n`;
  exchange.begin({ status: 200, reason: undefined, lines, length: bytes.length, isDated: true });
  exchange.end(bytes);
}

const get = (path: string, ...lines: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, "Host: a", ...lines].join("\r\n")}\r\n\r\n`;

describe("a client that leaves its last response unread", () => {
  const LARGE = Buffer.alloc(32 * 1024 * 1024, "l");

  test.each([
    { name: "that is to be closed", lines: ["Connection: close"], halfCloses: false },
    { name: "of a half-closed client", lines: ["Connection: close"], halfCloses: true },
    { name: "of a half-closed client, with keep-alive", lines: [], halfCloses: true },
    { name: "with keep-alive", lines: [], halfCloses: false },
  ])("server connection $name is closed if its last response is not read", async ({ lines, halfCloses }) => {
    await open((exchange) => respond(exchange, LARGE), { responseReadMs: 200 });
    const { socket } = opened.dial(get("/", ...lines));
    socket.pause();
    if (halfCloses) socket.end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });

  test("connection of a half-closed client with an unread response is closed", async () => {
    await open(
      (exchange) => {
        exchange.keepsAlive = false;
        exchange.lingers = true;
        exchange.onInputEnd = () => respond(exchange, LARGE);
      },
      { responseReadMs: 200 },
    );
    opened.dial(get("/")).socket.pause().end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });

  test("server connection with an unread response is closed even while it drains the client's data", async () => {
    await open(
      (exchange) => {
        exchange.keepsAlive = false;
        exchange.lingers = true;
        respond(exchange, LARGE);
      },
      { responseReadMs: 200 },
    );
    const { socket } = opened.dial(get("/"));
    socket.pause();
    socket.end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });
});

test("server connection reads no further request while responses are unread", async () => {
  await open((exchange) => respond(exchange, Buffer.alloc(32 * 1024)), { responseReadMs: 300 });
  const { socket } = opened.dial();
  socket.pause();
  const upload = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
  let asked = 0;
  const isClosed = (): boolean => opened.sockets[0]?.destroyed === true;
  // The client's own socket buffers some of the data before it is full.
  for (; asked < 1_000 && !isClosed(); asked++) {
    socket.write(upload);
    await waitFor("the request, or the end", () => opened.exchanges.length > asked || isClosed(), { everyMs: 0 });
    expect(opened.sockets[0]?.writableLength ?? 0).toBeLessThan(128 * 1024);
    socket.write("x");
  }
  expect(isClosed()).toBe(true);
});

test("server with too many incomplete heads closes the connection that has waited longest", async () => {
  await open((exchange) => respond(exchange, exchange.url));
  const part = "GET /first HTTP/1.1\r\nHost: a\r\n";
  const first = opened.dial(part);
  await waitFor("the first", () => opened.sockets[0]?.bytesRead === part.length);
  for (let i = 0; i < 999; i++) opened.dial(part.replace("first", `${i}`));
  await waitFor("the others", () => opened.sockets.filter(({ bytesRead }) => bytesRead > 0).length === 1_000);
  expect(opened.faults).toEqual([]);
  // A connection with a complete head no longer waits, nor does a closed one.
  clients[400]?.write("\r\n");
  clients[500]?.resetAndDestroy();
  await waitFor("one to be answered", () => opened.exchanges.length === 1);
  await waitFor("one to be closed", () => opened.sockets.filter(({ destroyed }) => destroyed).length === 1);
  const more = [opened.dial(part), opened.dial(part)];
  await waitFor("two more", () => opened.sockets.filter(({ bytesRead }) => bytesRead > 0).length === 1_002);
  expect(opened.faults).toEqual([]);
  const last = opened.dial(part.replace("first", "last"));
  await waitFor("the first to be ended", () => first.socket.readableEnded || first.socket.destroyed);
  for (const { socket } of [...more, last]) socket.write("\r\n");
  await waitFor("the last to be answered", () => last.text().endsWith("/last"));
  expect(opened.faults).toEqual(["late"]);
});

describe("pipelined requests", () => {
  test("server connection handles pipelined requests one at a time", async () => {
    await open();
    const { text } = opened.dial(get("/1") + get("/2") + get("/3"));
    for (const number of [1, 2, 3]) {
      await waitFor("the next request", () => opened.exchanges.length === number);
      const exchange = opened.exchanges[number - 1] as ServerExchange;
      expect(exchange.url).toBe(`/${number}`);
      respond(exchange, `answer ${number}`);
      await waitFor("its response", () => text().endsWith(`answer ${number}`));
    }
  });

  test("server connection stops reading pipelined requests at a limit and loses none", async () => {
    await open();
    const long = `/${"x".repeat(8_000)}`;
    const count = 2_000;
    const { socket, text } = opened.dial(get("/first"));
    await waitFor("the first request", () => opened.exchanges.length === 1);
    for (let i = 0; i < count; i++) socket.write(get(long));
    await waitFor("the server to stop reading", () => opened.sockets[0]?.isPaused() === true);
    expect(opened.sockets[0]?.bytesRead).toBeLessThan(1024 * 1024);
    expect(socket.writableLength).toBeGreaterThan(0);
    for (let i = 0; i <= count; i++) {
      await waitFor("the next request", () => opened.exchanges.length === i + 1, { everyMs: 0 });
      respond(opened.exchanges[i] as ServerExchange);
    }
    await waitFor("all responses", () => text().split("\r\n\r\nok").length === count + 2);
  });

  test("server connection survives 10,000 pipelined requests with immediate responses", async () => {
    await open((exchange) => respond(exchange));
    const { text } = opened.dial(get("/").repeat(10_000));
    await waitFor("all responses", () => text().split("\r\n\r\nok").length === 10_001);
    expect(opened.thrown).toEqual([]);
  });

  test("server connection ignores data after a request with `Connection: close`", async () => {
    await open((exchange) => respond(exchange));
    const { socket } = opened.dial(get("/1", "Connection: close") + get("/2"));
    await waitFor("the end", () => socket.readableEnded);
    expect(opened.exchanges.map(({ url }) => url)).toEqual(["/1"]);
  });

  test("server connection drops pipelined requests after a handler throws", async () => {
    await open((exchange) => {
      if (exchange.url === "/bad") throw new Error("of the handler");
      respond(exchange);
    });
    const bad = opened.dial(get("/1") + get("/bad") + get("/2"));
    await waitFor("its end", () => bad.socket.destroyed || bad.socket.readableEnded);
    expect(opened.exchanges.map(({ url }) => url)).toEqual(["/1", "/bad"]);
    expect(opened.thrown).toHaveLength(1);
    const good = opened.dial(get("/after"));
    await waitFor("a response", () => good.text().endsWith("ok"));
  });
});

describe("a response before the end of the request", () => {
  const head = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n";

  test("server connection discards the rest of a request after an early response", async () => {
    await open((exchange) => respond(exchange, exchange.url));
    const { socket, text } = opened.dial(head);
    await waitFor("the response", () => text().endsWith("/upload"));
    // The rest may take a minute, and heads are large.
    expect(opened.exchanges[0]?.rawHeaders).toEqual([]);
    socket.write("GET /x HTTP/1.1\r\n\r\n".slice(0, 19));
    await waitFor("the rest to be read", () => (opened.sockets[0]?.bytesRead ?? 0) === head.length + 19);
    expect(opened.exchanges).toHaveLength(1);
    socket.write(`\n${get("/next")}`);
    await waitFor("the next response", () => text().endsWith("/next"));
    expect(opened.faults).toEqual([]);
  });

  test("server connection closes when a discarded body exceeds its limit", async () => {
    await open((exchange) => respond(exchange), { drainBytesMax: 1_000 });
    const { socket, text } = opened.dial(head.replace("20", "2000"));
    await waitFor("the response", () => text().endsWith("ok"));
    socket.write("x".repeat(2_000) + get("/next"));
    await waitFor("the end", () => socket.readableEnded);
    expect(text().match(/^HTTP/gm)).toHaveLength(1);
    expect(opened.exchanges).toHaveLength(1);
  });

  test("server connection closes when a discarded body is malformed", async () => {
    await open((exchange) => respond(exchange));
    const chunks = "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const { socket, text } = opened.dial(chunks);
    await waitFor("the response", () => text().endsWith("ok"));
    socket.write(`zz\r\n${get("/next")}`);
    await waitFor("the end", () => socket.readableEnded || socket.destroyed);
    expect(opened.exchanges).toHaveLength(1);
  });
});

describe("a body whose last bytes its receiver pauses", () => {
  const upload = (path: string, bytes: number): string =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`;

  test("server connection continues after a receiver pauses the last body bytes", async () => {
    await open((exchange) => {
      let bytes = 0;
      exchange.read({
        onChunk: (piece) => {
          bytes += piece.length;
          exchange.pause();
          setImmediate(() => exchange.resume());
        },
        onEnd: () => setImmediate(() => respond(exchange, `${exchange.url} ${bytes}`)),
      });
    });
    const { socket, text } = opened.dial(upload("/1", 300_000));
    await waitFor("the first response", () => text().endsWith("/1 300000"));
    socket.write(upload("/2", 200_000));
    await waitFor("the second response", () => text().endsWith("/2 200000"));
  });

  test("server connection reads at most 128 KiB of a body that its receiver has paused", async () => {
    let chunks = 0;
    await open((exchange) => {
      const onChunk = () => {
        chunks += 1;
        exchange.pause();
      };
      // The first bytes arrive before the receiver is attached.
      setTimeout(() => exchange.read({ onChunk, onEnd: () => undefined }), 100);
    });
    const { socket } = opened.dial(upload("/1", 4_000_000));
    const readBytes = () => opened.sockets[0]?.bytesRead ?? 0;
    const expectFew = () => expect(readBytes()).toBeLessThanOrEqual(128 * 1024);
    await waitFor("the decision", () => chunks > 0);
    expectFew();
    await sleep(200);
    expectFew();
    expect(chunks).toBe(1);
    opened.exchanges[0]?.resume();
    await waitFor("the next read", () => chunks > 1);
    socket.destroy();
  });

  test("server connection continues after a complete body had no receiver", async () => {
    await open((exchange) => {
      setTimeout(() => {
        let bytes = 0;
        exchange.read({
          onChunk: (piece) => (bytes += piece.length),
          onEnd: () => respond(exchange, `${exchange.url} ${bytes}`),
        });
      }, 100);
    });
    const { socket, text } = opened.dial();
    const begun = upload("/1", 100_000);
    socket.write(begun.slice(0, 60_000));
    await waitFor("a part", () => opened.sockets[0]?.bytesRead === 60_000);
    socket.write(begun.slice(60_000));
    await waitFor("the first response", () => text().endsWith("/1 100000"));
    socket.write(upload("/2", 10));
    await waitFor("the second response", () => text().endsWith("/2 10"));
  });
});

describe("a client that disconnects at any byte", () => {
  const MESSAGE = `POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n${get("/b")}`;

  test.each(["end", "reset"] as const)(
    "server connection survives a client %s at any byte without leaks",
    async (by) => {
      let closes = 0;
      await open((exchange) => {
        exchange.onClose = () => {
          closes += 1;
        };
        exchange.read({ onChunk: () => undefined, onEnd: () => respond(exchange) });
      });
      for (let at = 0; at <= MESSAGE.length; at++) {
        const { socket } = opened.dial(MESSAGE.slice(0, at));
        socket.once("connect", () => setImmediate(() => (by === "end" ? socket.end() : socket.resetAndDestroy())));
      }
      const count = MESSAGE.length + 1;
      await waitFor("all connections to be closed", () => {
        return opened.sockets.length === count && opened.sockets.every((socket) => socket.destroyed);
      });
      expect(opened.thrown).toEqual([]);
      expect(closes).toBeLessThanOrEqual(opened.exchanges.length);
      expect(opened.exchanges.length).toBeGreaterThan(0);
      if (by === "end") expect(opened.exchanges.every(({ isOver }) => isOver)).toBe(true);
    },
  );

  test("half-closed client gets the responses to all of its requests", async () => {
    await open((exchange) =>
      exchange.read({ onChunk: () => undefined, onEnd: () => setImmediate(() => respond(exchange, exchange.url)) }),
    );
    const { socket, text } = opened.dial(MESSAGE);
    socket.end();
    await waitFor("the end", () => socket.readableEnded);
    expect(text().match(/\/[ab]/g)).toEqual(["/a", "/b"]);
  });
});

describe("timeouts", () => {
  test.each([
    { name: "no byte", bytes: "" },
    { name: "a part of a head", bytes: "GET / HT" },
    { name: "empty lines without end", bytes: "\r\n\r\n" },
  ])("server connection times out while it waits for a head: $name", async ({ bytes }) => {
    await open(undefined, { requestHeadMs: 100 });
    opened.dial(bytes);
    await waitFor("the server's side to be over", () => opened.sockets[0]?.writable === false);
    expect(opened.exchanges).toEqual([]);
  });

  test("server connection measures the timeout of a slow head from the head's first byte", async () => {
    await open(undefined, { requestHeadMs: 300 });
    const { socket } = opened.dial("GET / HTTP/1.1\r\nX-Drip: ");
    const drip = setInterval(() => socket.write("x"), 20);
    await waitFor("it to be late", () => opened.faults.includes("late"));
    clearInterval(drip);
    expect(opened.exchanges).toEqual([]);
  });

  test("server connection times out while it waits for the next request", async () => {
    await open((exchange) => respond(exchange), { keepAliveMs: 100 });
    const { socket, text } = opened.dial(get("/"));
    await waitFor("the end", () => socket.readableEnded);
    expect(text()).toMatch(/ok$/);
  });
});

test("server that is closed ends idle connections, waits for the others and leaves no timer", async () => {
  await open();
  const idle = opened.dial();
  const busy = opened.dial(get("/"));
  await waitFor("the request", () => opened.exchanges.length === 1 && opened.sockets.length === 2);
  const { server } = opened;
  const closed = server.close(
    10_000,
    () => opened.exchanges[0]?.isOver !== true,
    () => undefined,
  );
  await waitFor("the idle one to end", () => idle.socket.readableEnded || idle.socket.destroyed);
  expect(busy.socket.destroyed).toBe(false);
  respond(opened.exchanges[0] as ServerExchange);
  await closed;
  expect(busy.text()).toMatch(/ok$/);
  expect(server.isListening).toBe(false);
});
