import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  call,
  type GateOptions,
  OPEN,
  openGate,
  readAll,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";
import { heldBytes } from "../../test/harness/memory-in-use.ts";
import { ReadScheduler } from "./read-scheduler.ts";

const { count } = ReadScheduler.prototype;

/* Bodies in chunks of one byte, in both directions, cost no more than their bytes, and do not affect other clients. */

const UPLOAD = "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const PIECES = Buffer.from("1\r\nx\r\n".repeat(10_000));
const MiB = 1024 * 1024;

let gate: TestGate;
let rawApp: Server | undefined;
const sockets = new Set<Socket>();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await gate.close();
  rawApp?.close();
  rawApp = undefined;
});

function kept(socket: Socket): Socket {
  socket.on("error", () => {});
  sockets.add(socket);
  return socket;
}

/** Starts clients in another process, which do not wait for this one. */
const startAttack = (code: string): ChildProcess =>
  spawn(process.execPath, ["-e", `const net = require("node:net");${code}`], { stdio: "inherit" });

/** Writes the same bytes repeatedly while the other side accepts them. */
function pour(socket: Socket, bytes: Buffer, times = Number.POSITIVE_INFINITY): void {
  let written = 0;
  const more = (): void => {
    while (!socket.destroyed && written++ < times && socket.write(bytes)) {}
  };
  socket.on("drain", more);
  more();
}

/** Opens an app that handles the bytes of its connections itself. */
async function openTo(onConnection: (socket: Socket) => void, options: GateOptions = {}): Promise<void> {
  const app = createServer((socket) => onConnection(kept(socket)));
  rawApp = app;
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  const upstream = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  gate = await openGate({ ...OPEN, ...options, config: { upstream, ...options.config } });
}

describe("chunks of one byte", () => {
  test("gate joins one-byte request chunks without losing data", async () => {
    let pieces = 0;
    let body = "";
    const app = await startApp((req: IncomingMessage, res) => {
      req.on("data", (piece: Buffer) => {
        pieces += 1;
        body += piece;
      });
      req.on("end", () => res.end("ok"));
    });
    gate = await openGate({ ...OPEN, app });
    const sent = "0123456789abcdefghijklmnopqrstuvwxyz".repeat(300);
    const client = kept(connect(gate.port, "127.0.0.1"));
    const read = readAll(client);
    client.write(UPLOAD);
    // Several writes, so that they arrive in more than one turn.
    for (let at = 0; at < sent.length; at += 2_700) {
      client.write([...sent.slice(at, at + 2_700)].map((one) => `1\r\n${one}\r\n`).join(""));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    client.write("0\r\n\r\n");
    await waitFor("the answer", () => read().endsWith("ok"));
    expect(body === sent).toBe(true);
    expect(pieces).toBeLessThan(sent.length / 50);
  });

  test("gate joins one-byte response chunks without losing data", async () => {
    const sent = "0123456789abcdefghijklmnopqrstuvwxyz".repeat(300);
    let headGone = (): void => {};
    await openTo((socket) =>
      socket.once("data", () => {
        const chunks = [...sent].map((one) => `1\r\n${one}\r\n`).join("");
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        // After the head is sent, because Node buffers until then.
        headGone = () => void socket.write(`${chunks}0\r\n\r\n`);
      }),
    );
    const client = kept(connect(gate.port, "127.0.0.1"));
    const read = readAll(client);
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await waitFor("the head", () => read().includes("first"));
    headGone();
    await waitFor("the end", () => read().endsWith("\r\n0\r\n\r\n"));
    const framed = read().slice(read().indexOf("\r\n\r\n") + 4);
    const chunks = [...framed.matchAll(/([0-9a-f]+)\r\n([0-9a-z]*)\r\n/g)].map(([, , data = ""]) => data);
    expect(chunks.join("") === `first${sent}`).toBe(true);
    expect(chunks.length).toBeLessThan(sent.length / 50);
  });

  test("unread one-byte response chunks use little memory", async () => {
    await openTo((socket) =>
      socket.once("data", () => {
        socket.pause();
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        pour(socket, PIECES);
      }),
    );
    const before = heldBytes();
    const clients = Array.from({ length: 3 }, () => {
      const client = kept(connect(gate.port, "127.0.0.1"));
      client.pause();
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      return client;
    });
    // Once the app has to wait, all buffers are full.
    const apps = () => [...sockets].filter((socket) => !clients.includes(socket));
    let last = -1;
    await waitFor(
      "the app to be paused",
      () => {
        const sent = apps().reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0);
        const isStill = apps().length === 3 && sent > 0 && sent === last;
        last = sent;
        return isStill;
      },
      { everyMs: 1_000, deadlineMs: 50_000 },
    );
    expect((heldBytes() - before) / clients.length).toBeLessThan(2 * MiB);
  }, 60_000);

  describe("of many uploads", () => {
    /** Most chunks in one turn of the event loop, and chunks in total. */
    let seen = { most: 0, all: 0 };
    beforeEach(() => {
      seen = { most: 0, all: 0 };
      let pieces = 0;
      vi.spyOn(ReadScheduler.prototype, "count").mockImplementation(function (this: ReadScheduler, socket, came) {
        if (pieces === 0) setImmediate(() => (pieces = 0));
        pieces += came;
        seen.all += came;
        seen.most = Math.max(seen.most, pieces);
        count.call(this, socket, came);
      });
    });
    afterEach(() => void vi.restoreAllMocks());
    // One read cannot be interrupted; no other connection is read in the same turn.
    const TURN_MAX = 2_048 + (64 * 1024) / 6;

    test("one-byte chunks of many uploads do not block the event loop or shutdown", async () => {
      const app = await startApp((req, res) => {
        if (req.url === "/upload") req.resume();
        else res.end("ok");
      });
      gate = await openGate({ ...OPEN, app, timeouts: { closeMs: 500 }, config: { limits: { addressShare: 1 } } });
      for (let i = 0; i < 30; i++) {
        const client = kept(connect(gate.port, "127.0.0.1"));
        client.resume();
        client.write(UPLOAD);
        pour(client, PIECES, 5);
      }
      for (let i = 0; i < 5; i++) expect((await call(gate.port)).body).toBe("ok");
      await waitFor("many pieces", () => seen.all > 200_000, { deadlineMs: 40_000 });
      expect(seen.most).toBeLessThanOrEqual(TURN_MAX);
      await gate.sidecar.close();
      await waitFor("every client to be left", () => [...sockets].every(({ destroyed }) => destroyed));
    }, 60_000);

    test.each([
      ["pass", {}],
      ["are refused", { policy: {} }],
    ])(
      "simultaneous one-byte chunks of uploads that %s do not block the event loop",
      async (_, options) => {
        const app = await startApp((req) => void req.resume());
        gate = await openGate({ ...OPEN, app, config: { limits: { addressShare: 1 } }, ...options });
        // Sent by another process, so that all data has arrived before the gate reads.
        const attack = startAttack(`
        for (let i = 0; i < 40; i++) {
          const socket = net.connect(${gate.port}, "127.0.0.1").on("error", () => {}).on("data", () => {});
          socket.write(${JSON.stringify(UPLOAD)} + "1\\r\\nx\\r\\n".repeat(12_000));
        }`);
        try {
          await waitFor("many pieces", () => seen.all > 200_000, { deadlineMs: 40_000 });
        } finally {
          attack.kill();
        }
        expect(seen.most).toBeLessThanOrEqual(TURN_MAX);
      },
      60_000,
    );
  });

  test("uploads with one-byte chunks do not starve a connection between two requests", async () => {
    const app = await startApp((req, res) => {
      if (req.url === "/upload") req.resume();
      else res.end("ok");
    });
    gate = await openGate({ ...OPEN, app, config: { limits: { addressShare: 1 } } });
    const idle = Array.from({ length: 100 }, () => {
      const client = kept(connect(gate.port, "127.0.0.1"));
      return { client, read: readAll(client) };
    });
    const askAll = async (times: number) => {
      for (const { client } of idle) client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await waitFor(
        "an answer to each",
        () => idle.every(({ read }) => read().split("HTTP/1.1 200").length === times + 1),
        {
          deadlineMs: 20_000,
        },
      );
    };
    await askAll(1);
    for (let i = 0; i < 20; i++) {
      const client = kept(connect(gate.port, "127.0.0.1"));
      client.resume();
      client.write(UPLOAD);
      pour(client, PIECES, 5);
    }
    // During the attack, in which each upload is paused and resumed many times.
    for (const times of [2, 3, 4]) await askAll(times);
  }, 90_000);

  test("many uploads with a few one-byte chunks each all make progress", async () => {
    const bytes = new Map<string, number>();
    const app = await startApp((req, res) => {
      const id = String(req.headers["x-id"]);
      req.on("data", (piece: Buffer) => bytes.set(id, (bytes.get(id) ?? 0) + piece.length));
      req.on("end", () => res.end("ok"));
    });
    gate = await openGate({
      ...OPEN,
      app,
      timeouts: { requestBodyIdleMs: 2_000 },
      config: { limits: { addressShare: 1 } },
    });
    // A read of 64 KiB contains about 940 of these.
    const chunks = Buffer.from(`40\r\n${"x".repeat(64)}\r\n`.repeat(2_000));
    const clients = Array.from({ length: 60 }, (_, i) => {
      const client = kept(connect(gate.port, "127.0.0.1"));
      client.resume();
      client.write(UPLOAD.replace("Host: a", `Host: a\r\nX-Id: ${i}`));
      pour(client, chunks);
      return client;
    });
    await waitFor("each to get on", () => bytes.size === clients.length);
    // Three times the idle limit.
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    expect(clients.filter(({ destroyed }) => destroyed)).toEqual([]);
    const least = Math.min(...bytes.values());
    expect(least).toBeGreaterThan(Math.max(...bytes.values()) / 10);
  }, 30_000);
});

test("gate aborts the upstream response when the client leaves it unread", async () => {
  const atApp = Promise.withResolvers<Socket>();
  await openTo(
    (socket) =>
      socket.once("data", () => {
        atApp.resolve(socket);
        socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        pour(socket, Buffer.alloc(64 * 1024, "x"));
      }),
    { timeouts: { responseReadMs: 300 } },
  );
  const client = kept(connect(gate.port, "127.0.0.1"));
  client.pause();
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const left = await atApp.promise;
  await waitFor("the app to be left", () => left.destroyed);
  await waitFor("the place to be free", async () =>
    (await gate.metrics()).includes('postern_sidecar_upstream_requests{state="active"} 0'),
  );
});

// Each attempt has another order of reads, pauses and packets, because a misinterpreted read loses data in only one of four responses.
test.each([1, 2, 3, 4])(
  "slow client receives every byte of a response (attempt %i)",
  async () => {
    const body = Buffer.alloc(8 * MiB, "x");
    const app = await startApp((_req, res) => res.end(body));
    gate = await openGate({ ...OPEN, app, timeouts: { responseReadMs: 8_000 } });
    const client = kept(connect(gate.port, "127.0.0.1"));
    let bytes = 0;
    client.on("data", (piece) => {
      bytes += piece.length;
      client.pause();
      setTimeout(() => client.resume(), 10);
    });
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await waitFor("all of it", () => bytes > body.length, { deadlineMs: 60_000 });
  },
  70_000,
);
