import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { call, type GateOptions, OPEN, openGate, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  fieldBlock,
  frame,
  HEADERS,
  PRIORITY,
  RawHttp2Client,
  RST_STREAM,
  requestFields,
  SETTINGS,
  windowUpdate,
} from "../../test/harness/http2-client.ts";
import { heldBytes } from "../../test/harness/memory-in-use.ts";
import { ReadScheduler } from "./read-scheduler.ts";

/*
 * Load that one HTTP/2 client can cause for the gate and its other clients. Where a limit is enforced by Node or nghttp2, the test is named
 * accordingly.
 */

const { count } = ReadScheduler.prototype;
const MiB = 1024 * 1024;
const ALONE = { config: { limits: { addressShare: 1 } } } satisfies GateOptions;
/** All requests except one wait for a concurrency slot at the app, and the kernel buffers only the bytes of that one. */
const ONE_PLACE = {
  config: { limits: { addressShare: 1, upstreamConnectionsMax: 1 } },
  timeouts: { connectMs: 600_000 },
} satisfies GateOptions;

const IN_KERNEL_BYTES_MAX = 8 * MiB;

let gate: TestGate;
let clients: RawHttp2Client[] = [];
let deafApp: Server | undefined;
const atApp = new Set<Socket>();
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  await gate.close();
  for (const socket of atApp) socket.destroy();
  atApp.clear();
  deafApp?.close();
  deafApp = undefined;
});

async function open(settings?: Parameters<RawHttp2Client["open"]>[0]): Promise<RawHttp2Client> {
  const client = new RawHttp2Client(gate.port);
  clients.push(client);
  return client.open(settings);
}

/** Opens an app that accepts connections and reads no data. */
async function openToDeaf(options: GateOptions = {}): Promise<void> {
  deafApp = createServer((socket) => void atApp.add(socket.pause().on("error", () => undefined)));
  deafApp.listen(0, "127.0.0.1");
  await once(deafApp, "listening");
  const upstream = `http://127.0.0.1:${(deafApp.address() as AddressInfo).port}`;
  gate = await openGate({ ...OPEN, ...options, config: { upstream, ...options.config } });
}

/** Waits until the number is over a bound and has not changed for a second. */
const stays = async (name: string, read: () => number, moreThan: number): Promise<void> => {
  let last = -1;
  await waitFor(
    name,
    () => {
      const isStill = read() === last && last > moreThan;
      last = read();
      return isStill;
    },
    { everyMs: 1_000, deadlineMs: 80_000 },
  );
};

describe("DATA frames of one byte", () => {
  const BYTE = (stream: number): Buffer => frame(DATA, 0, stream, Buffer.from("x"));
  let seen = { most: 0, all: 0 };
  beforeEach(() => {
    seen = { most: 0, all: 0 };
    let pieces = 0;
    // Not a spy, which would remember each call.
    ReadScheduler.prototype.count = function (this: ReadScheduler, socket, came) {
      if (pieces === 0) setImmediate(() => (pieces = 0));
      pieces += came;
      seen.all += came;
      seen.most = Math.max(seen.most, pieces);
      count.call(this, socket, came);
    };
  });
  afterEach(() => {
    ReadScheduler.prototype.count = count;
  });

  test("one-byte DATA frames of many connections do not block the event loop", async () => {
    const app = await startApp((req, res) => {
      if (req.url === "/upload") req.resume();
      else res.end("ok");
    });
    gate = await openGate({ ...OPEN, app, ...ALONE });
    const frames = Buffer.concat(Array.from({ length: 10_000 }, () => BYTE(1)));
    for (let at = 0; at < 30; at += 1) {
      const client = await open();
      client.ask(1, requestFields("POST", "/upload"), 0);
      // At most its window.
      for (let times = 0; times < 6; times += 1) client.write(frames);
    }
    for (let at = 0; at < 5; at += 1) expect((await call(gate.port)).body).toBe("ok");
    await waitFor("many frames", () => seen.all > 200_000, { deadlineMs: 40_000 });
    // One read cannot be interrupted; no other connection is read in the same turn.
    expect(seen.most).toBeLessThanOrEqual(2_048 + (64 * 1024) / 10 + 1);
  }, 60_000);

  test("one-byte DATA frames reach the app joined and complete", async () => {
    let pieces = 0;
    let body = "";
    const app = await startApp((req, res) => {
      req.on("data", (piece: Buffer) => {
        pieces += 1;
        body += piece;
      });
      req.on("end", () => res.end("ok"));
    });
    gate = await openGate({ ...OPEN, app });
    const client = await open();
    client.ask(1, requestFields("POST", "/upload"), 0);
    const sent = "0123456789abcdefghijklmnopqrstuvwxyz".repeat(300);
    for (let at = 0; at < sent.length; at += 2_700) {
      client.write(...[...sent.slice(at, at + 2_700)].map((one) => frame(DATA, 0, 1, Buffer.from(one))));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    client.write(frame(DATA, 1, 1));
    await waitFor("the answer", () => client.has(DATA, 1));
    expect(body === sent).toBe(true);
    expect(pieces).toBeLessThan(sent.length / 50);
  });

  test("one-byte DATA frames for a stalled app use memory in proportion to their size", async () => {
    await openToDeaf(ONE_PLACE);
    const client = await open();
    const prepared = new Map<number, Buffer>();
    for (let stream = 1; stream < 20; stream += 2) {
      prepared.set(stream, Buffer.concat(Array.from({ length: 2_000 }, () => BYTE(stream))));
    }
    const before = heldBytes();
    let sent = 0;
    const pour = (): void => {
      for (let stream = 3; stream < 20 && !client.isClosed; stream += 2) {
        const frames = Math.min(client.windowOf(stream), 2_000);
        if (frames <= 0 || client.socket.writableLength > MiB) continue;
        client.spend(stream, frames);
        client.write((prepared.get(stream) as Buffer).subarray(0, frames * BYTE(stream).length));
        sent += frames;
      }
    };
    for (let stream = 1; stream < 20; stream += 2) client.ask(stream, requestFields("POST", "/upload"), 0);
    // The first request has the slot at the app, and its bytes go to the kernel.
    client.spend(1, 1);
    client.write(BYTE(1));
    await waitFor("the first to have its place", () => atApp.size === 1);
    const timer = setInterval(pour, 1);
    try {
      // Returns zero until the gate has read everything, because a busy machine may pause the gate for seconds.
      await stays("all windows to be used", () => (seen.all === sent + 1 ? sent : 0), 9 * 65_535 - 1);
    } finally {
      clearInterval(timer);
    }
    expect(client.isClosed).toBe(false);
    // A paused stream gets no second window.
    expect(sent).toBe(9 * 65_535);
    expect((heldBytes() - before) / MiB).toBeLessThan(32);
  }, 120_000);
});

test("HTTP/2 flow control bounds 99 uploads to a stalled app while other streams continue", async () => {
  await openToDeaf(ONE_PLACE);
  const client = await open();
  const piece = Buffer.alloc(16 * 1024);
  let sent = 0;
  for (let stream = 1; stream < 198; stream += 2) client.ask(stream, requestFields("POST", "/upload"), 0);
  const timer = setInterval(() => {
    for (let stream = 1; stream < 198; stream += 2) {
      const bytes = Math.min(client.windowOf(stream), piece.length);
      if (bytes <= 0 || client.socket.writableLength > MiB) continue;
      client.spend(stream, bytes);
      client.write(frame(DATA, 0, stream, piece.subarray(0, bytes)));
      sent += bytes;
    }
  }, 1);
  try {
    await stays("the uploads to be paused", () => sent, 99 * 65_535);
  } finally {
    clearInterval(timer);
  }
  expect(sent).toBeLessThan(99 * 3 * 65_535 + IN_KERNEL_BYTES_MAX);
  // The blocked streams do not exhaust the window of the connection.
  expect(client.window).toBeGreaterThan(0);
  client.ask(1_001, requestFields("GET", "//"), 1);
  await waitFor("an answer", () => client.has(HEADERS, 1_001));
}, 90_000);

describe("a client that leaves responses unread", () => {
  /** SETTINGS_INITIAL_WINDOW_SIZE: no byte of a response may be sent. */
  const NO_WINDOW = [[4, 0]] as const;

  test.each([
    ["small ones of the app", OPEN, false],
    ["refusals", {}, false],
    ["refusals of requests that never end", {}, true],
  ])(
    "HTTP/2 streams with unread responses are reset, and their connection is closed: %s",
    async (_, options, isOpen) => {
      gate = await openGate({
        ...options,
        timeouts: { responseReadMs: 200, keepAliveMs: 200, requestBodyIdleMs: 200 },
      });
      const client = await open(NO_WINDOW);
      for (let stream = 1; stream < 40; stream += 2) client.ask(stream, requestFields("POST", "/"), isOpen ? 0 : 1);
      await waitFor("their heads", () => client.has(HEADERS, 39));
      await waitFor(
        "the streams to be reset",
        () => client.frames.filter(({ type }) => type === RST_STREAM).length === 20,
      );
      await waitFor("the connection to be closed", () => client.isClosed);
    },
  );
});

describe("a connection", () => {
  /** Writes repeatedly while the gate reads. */
  async function pourUntilClosed(client: RawHttp2Client, frames: () => Buffer, times: number): Promise<number> {
    let written = 0;
    for (; written < times && !client.isClosed; written += 1) {
      if (!client.write(frames())) await new Promise(setImmediate);
      if (written % 50 === 0) await new Promise(setImmediate);
    }
    await waitFor("the connection to be closed", () => client.isClosed);
    return written;
  }

  const post = (stream: number): Buffer => frame(HEADERS, END_HEADERS, stream, fieldBlock(requestFields("POST", "/")));

  test("gate sends ENHANCE_YOUR_CALM to a client that repeatedly causes stream resets", async () => {
    gate = await openGate(OPEN);
    const client = await open();
    let stream = -1;
    // A pseudo-header field among trailers is a stream error. The client itself resets no stream.
    const made = (): Buffer => {
      stream += 2;
      const trailers = frame(HEADERS, END_HEADERS | END_STREAM, stream, fieldBlock([[":path", "/"]]));
      return Buffer.concat([post(stream), trailers]);
    };
    await pourUntilClosed(client, made, 20_000);
    // Node itself would allow 1,000.
    expect(client.frames.filter(({ type }) => type === RST_STREAM).length).toBeLessThan(800);
    expect((await call(gate.port)).status).toBe(200);
  });

  test("gate closes an HTTP/2 connection whose request head never ends", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestHeadMs: 200 } });
    const client = await open();
    await waitFor("the settings", () => client.frames.some(({ type, flags }) => type === SETTINGS && flags === ACK));
    client.write(frame(HEADERS, END_STREAM, 1, fieldBlock(requestFields("GET", "/")).subarray(0, 10)));
    const startedMs = performance.now();
    await waitFor("it to be closed", () => client.isClosed);
    expect(performance.now() - startedMs).toBeGreaterThan(100);
    expect(client.goneCode).toBe(0);
  });

  test("gate responds 408 to HTTP/2 requests whose body never ends", async () => {
    gate = await openGate({
      ...OPEN,
      app: await startApp((req) => void req.resume()),
      timeouts: { requestBodyIdleMs: 200 },
    });
    const client = await open();
    for (let stream = 1; stream < 10; stream += 2) {
      client.ask(stream, requestFields("POST", "/"), 0);
      client.write(frame(DATA, 0, stream, Buffer.from("x")));
    }
    await waitFor("their ends", () => client.frames.filter(({ type }) => type === RST_STREAM).length === 5);
    expect(await gate.metrics()).toContain("postern_sidecar_in_flight 0");
  });

  describe("is ended by Node or nghttp2 itself", () => {
    test("HTTP/2 connection is closed on an endless sequence of CONTINUATION frames", async () => {
      gate = await openGate(OPEN);
      const client = await open();
      client.write(frame(HEADERS, 0, 1, fieldBlock(requestFields("GET", "/"))));
      const written = await pourUntilClosed(client, () => frame(CONTINUATION, 0, 1), 10_000);
      expect(written).toBeLessThan(10_000);
      expect(client.frames.filter(({ type }) => type === HEADERS)).toEqual([]);
    });

    test.each([
      ["opens a window by nothing", (stream: number) => windowUpdate(stream, 0)],
      ["opens a window too far", (stream: number) => windowUpdate(stream, 0x7f_ff_ff_ff)],
      ["sends another head in the middle of a stream", (stream: number) => post(stream)],
    ])("HTTP/2 connection is closed when each stream %s", async (_, broken) => {
      gate = await openGate(OPEN);
      const client = await open();
      let stream = -1;
      const made = (): Buffer => {
        stream += 2;
        return Buffer.concat([post(stream), broken(stream)]);
      };
      expect(await pourUntilClosed(client, made, 20_000)).toBeLessThan(5_000);
      expect(gate.app.seen).toEqual([]);
    });

    test("HTTP/2 connection is closed on repeated empty DATA frames", async () => {
      await openToDeaf();
      const client = await open();
      client.ask(1, requestFields("POST", "/"), 0);
      const written = await pourUntilClosed(client, () => frame(DATA, 0, 1), 20_000);
      expect(written).toBeLessThan(20_000);
    });

    test("HTTP/2 connection is closed when the client exceeds a flow control window", async () => {
      await openToDeaf();
      const client = await open();
      client.ask(1, requestFields("POST", "/"), 0);
      const piece = Buffer.alloc(16 * 1024);
      await pourUntilClosed(client, () => frame(DATA, 0, 1, piece), 10_000);
    });
  });

  test("HTTP/2 connection with unread responses retains no request headers", async () => {
    gate = await openGate();
    // SETTINGS_INITIAL_WINDOW_SIZE.
    const client = await open([[4, 0]]);
    const many = Array.from({ length: 400 }, (_, at) => [`x-${at}`, "v".repeat(25)] as const);
    client.ask(1, requestFields("GET", "/", many));
    await waitFor("a response", () => client.has(HEADERS, 1));
    const before = heldBytes();
    for (let stream = 3; stream <= 199; stream += 2) client.ask(stream, requestFields("GET", "/", many));
    await waitFor("all responses", () => client.has(HEADERS, 199));
    // Polls, because the garbage of other test files in this process may be collected late.
    await expect.poll(() => (heldBytes() - before) / 99).toBeLessThan(16 * 1024);
    expect(client.isClosed).toBe(false);
  });

  test("HPACK references to a large field count toward the maximum head size", async () => {
    gate = await openGate(OPEN);
    const client = await open();
    client.ask(1, requestFields("GET", "/"));
    const large = fieldBlock([["x-large", "a".repeat(3_900)]], true);
    // 62: the newest of the dynamic table.
    const repeated = Buffer.alloc(12_000, 0x80 | 62);
    client.write(
      frame(HEADERS, 1 | END_HEADERS, 3, Buffer.concat([fieldBlock(requestFields("GET", "/")), large, repeated])),
    );
    await waitFor("its end", () => client.isClosed || client.has(RST_STREAM, 3) || client.has(HEADERS, 3));
    expect(gate.app.seen.length).toBeLessThanOrEqual(1);
    expect((await call(gate.port)).status).toBe(200);
  });

  test.each([
    ["PRIORITY", () => frame(PRIORITY, 0, 1, Buffer.from([0, 0, 0, 3, 1]))],
    ["WINDOW_UPDATE", () => windowUpdate(0, 1)],
    ["frames of an unknown type", () => frame(0xee, 0, 0, Buffer.from("x"))],
  ])("HTTP/2 flood with %s does not block other clients", async (_, made) => {
    gate = await openGate(OPEN);
    const client = await open();
    const many = Buffer.concat(Array.from({ length: 5_000 }, made));
    for (let at = 0; at < 40; at += 1) client.write(many);
    for (let at = 0; at < 5; at += 1) expect((await call(gate.port)).status).toBe(200);
  });
});
