import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  call,
  type GateOptions,
  kindOf,
  OPEN,
  openGate,
  readAll,
  sendRaw,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";

/*
 * A single client without a key tries to take all concurrency slots at the app: by announced bodies that never arrive, by bodies that drip,
 * by requests and connections that stay open. Other clients must not be affected.
 */

const PLACES = 10;

let gate: TestGate;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await gate.close();
});

/** Sends bytes from a local address, and stays connected. */
function send(bytes: string, localAddress = "127.0.0.1"): { socket: Socket; read: () => string } {
  const socket = connect({ host: "127.0.0.1", port: gate.port, localAddress });
  clients.push(socket);
  const read = readAll(socket);
  socket.write(bytes);
  return { socket, read };
}

const get = (path: string, ...headers: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, "Host: a", ...headers].join("\r\n")}\r\n\r\n`;
const post = (...headers: string[]): string =>
  `${["POST /upload HTTP/1.1", "Host: a", ...headers].join("\r\n")}\r\n\r\n`;

const requestsIn = async (state: string): Promise<number> => {
  const line = (await gate.metrics())
    .split("\n")
    .find((text) => text.startsWith(`postern_sidecar_upstream_requests{state="${state}"}`));
  return Number(line?.split(" ").at(-1));
};

describe("announced bodies", () => {
  test.each([
    { name: "small ones with a length", head: post("Content-Length: 10"), begun: "nine byte" },
    { name: "large ones with a length", head: post("Content-Length: 1000000"), begun: "" },
    { name: "chunks", head: post("Transfer-Encoding: chunked"), begun: "5\r\n" },
  ])("request that waits for its body occupies no concurrency slot: $name", async ({ head, begun }) => {
    gate = await openGate({ ...OPEN, config: { limits: { upstreamConnectionsMax: PLACES, addressShare: 1 } } });
    for (let i = 0; i < 5 * PLACES; i++) send(head + begun);
    await waitFor("all of them to have been taken in", async () =>
      (await gate.metrics()).includes(`postern_sidecar_in_flight ${5 * PLACES}`),
    );
    expect(await requestsIn("active")).toBe(0);
    expect((await call(gate.port, { path: "/other" })).status).toBe(200);
    expect(gate.app.seen.map(({ url }) => url)).toEqual(["/other"]);
  });

  test("gate forwards a small body only after its arrival, with its length", async () => {
    gate = await openGate(OPEN);
    const { socket, read } = send(`${post("Content-Length: 10")}first`);
    await waitFor("the head to be taken in", async () =>
      (await gate.metrics()).includes("postern_sidecar_in_flight 1"),
    );
    socket.write("after");
    await waitFor("the answer", () => read().endsWith("ok"));
    const [seen] = gate.app.seen;
    expect([seen?.body, seen?.headers["content-length"]]).toEqual(["firstafter", "10"]);
  });

  test("gate responds 408 without calling the app when a body does not arrive", async () => {
    gate = await openGate({ ...OPEN, timeouts: { requestBodyIdleMs: 200 } });
    const { status, text } = await sendRaw(gate.port, `${post("Content-Length: 10")}half`);
    expect(status).toBe(408);
    expect(text).toContain("/errors/request_timeout");
    expect(text).toMatch(/x-request-id: req_/i);
    expect(gate.app.seen).toEqual([]);
  });

  test.each([
    { name: "chunks", head: post("Transfer-Encoding: chunked"), piece: "1\r\nx\r\n" },
    { name: "a length", head: post("Content-Length: 1000000"), piece: "x" },
  ])("gate responds 408 to a slowly arriving body and releases its slot: $name", async ({ head, piece }) => {
    const app = await startApp((req) => void req.resume());
    const limits = { bodyBytesPerSecondMin: 240 };
    gate = await openGate({ ...OPEN, app, config: { limits }, timeouts: { requestBodyIdleMs: 1_000 } });
    const { socket, read } = send(head + piece);
    await waitFor("the place to be taken", async () => (await requestsIn("active")) === 1);
    const dripping = setInterval(() => socket.write(piece), 100);
    await waitFor("the 408", () => read().startsWith("HTTP/1.1 408"));
    clearInterval(dripping);
    await waitFor("the place to be free", async () => (await requestsIn("active")) === 0);
  });

  test("gate does not abort uploads that are slow because the app reads slowly", async () => {
    const held = Promise.withResolvers<IncomingMessage>();
    const app = await startApp((req, res) => {
      req.pause();
      held.resolve(req);
      req.on("end", () => res.end("all of it"));
    });
    gate = await openGate({ ...OPEN, app, timeouts: { requestBodyIdleMs: 300 } });
    const response = call(gate.port, { method: "POST", body: Buffer.alloc(32 * 1024 * 1024) });
    const atApp = await held.promise;
    // Several intervals of the check of requests in flight.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    atApp.resume();
    expect((await response).body).toBe("all of it");
  });
});

describe("upstream concurrency by client address", () => {
  /** Opens an app that never responds to requests for /stay. */
  const openStaying = (
    options: GateOptions = {},
    { connectMs, upstreamConnectionsMax } = { connectMs: 500, upstreamConnectionsMax: PLACES },
  ) =>
    startApp((req, res) => {
      if (req.url !== "/stay") res.end("ok");
    }).then(async (app) => {
      gate = await openGate({
        ...OPEN,
        ...options,
        app,
        timeouts: { connectMs, closeMs: 200 },
        config: { limits: { upstreamConnectionsMax, addressShare: 0.5 } },
      });
    });

  const callFrom = async (localAddress: string, path: string): Promise<number> => {
    const req = request({ host: "127.0.0.1", port: gate.port, localAddress, path, agent: false }).end();
    const [res] = (await once(req, "response")) as [IncomingMessage];
    res.resume();
    return res.statusCode ?? 0;
  };

  test("client address that exceeds its upstream share gets 503 while others are served", async () => {
    await openStaying();
    for (let i = 0; i < 3 * PLACES; i++) send(get("/stay"));
    await waitFor("the share to be taken", async () => (await requestsIn("active")) === PLACES / 2);
    expect(await callFrom("127.0.0.2", "/quick")).toBe(200);
    const refused = await call(gate.port, { path: "/quick" });
    expect([refused.status, kindOf(refused), refused.headers["retry-after"]]).toEqual([503, "upstream_busy", "1"]);
    expect(await gate.metrics()).toMatch(/postern_sidecar_upstream_failures_total\{reason="busy"\} [1-9]/);
  });

  test("gate responds 503 immediately when an address has too many queued requests", async () => {
    await openStaying({}, { connectMs: 120_000, upstreamConnectionsMax: 2 });
    send(get("/stay"));
    await waitFor("the share to be taken", async () => (await requestsIn("active")) === 1);
    const startedMs = performance.now();
    // Each may send 64 KiB more while it waits.
    const uploads = Array.from({ length: 140 }, () => send(`${post("Transfer-Encoding: chunked")}1\r\nx\r\n`));
    await waitFor("some to be refused", () => uploads.some(({ read }) => read503(read())));
    await waitFor("all to be there", async () => {
      const refused = uploads.filter(({ read }) => read503(read())).length;
      return refused > 0 && (await requestsIn("queued")) + refused === uploads.length;
    });
    expect(performance.now() - startedMs).toBeLessThan(60_000);
    expect(await requestsIn("queued")).toBeGreaterThan(100);
    expect(await requestsIn("queued")).toBeLessThanOrEqual(128);
    send(get("/stay"), "127.0.0.2");
    await waitFor("another to have a place", async () => (await requestsIn("active")) === 2);
    const before = await requestsIn("queued");
    const late = send(`${post("Transfer-Encoding: chunked")}1\r\nx\r\n`, "127.0.0.2");
    await waitFor("it to wait", async () => (await requestsIn("queued")) === before + 1);
    expect(late.read()).toBe("");
    expect(await gate.metrics()).toMatch(/postern_sidecar_upstream_failures_total\{reason="busy"\} [1-9]/);
  });

  test.each([
    { name: "chunks", head: post("Transfer-Encoding: chunked"), begin: "32000\r\n", end: "\r\n0\r\n\r\n" },
    { name: "a length", head: post("Content-Length: 204800"), begin: "", end: "" },
  ])(
    "gate drains a large upload that exceeds the queue, then serves the next request: $name",
    async ({ head, begin, end }) => {
      await openStaying({}, { connectMs: 120_000, upstreamConnectionsMax: 2 });
      send(get("/stay"));
      await waitFor("the share to be taken", async () => (await requestsIn("active")) === 1);
      const uploads = Array.from({ length: 140 }, () => send(`${post("Transfer-Encoding: chunked")}1\r\nx\r\n`));
      await waitFor("some to be refused", () => uploads.some(({ read }) => read503(read())));
      const { read } = send(`${head}${begin}${"x".repeat(0x32000)}${end}${get("/behind")}`);
      await waitFor("two answers", () => read().split("HTTP/1.1 503 ").length === 3);
    },
  );

  test("upstream concurrency is limited by the client address that the policy defines", async () => {
    const clientAddress = { from: "forwardedFor" as const, trustedProxies: ["127.0.0.1"] };
    await openStaying({ policy: { ...OPEN.policy, clientAddress } });
    const from = (ip: string, path: string) => get(path, `X-Forwarded-For: ${ip}`);
    for (let i = 0; i < 3 * PLACES; i++) send(from(`2001:db8:0:7::${i}`, "/stay"));
    await waitFor("the share to be taken", async () => (await requestsIn("active")) === PLACES / 2);
    for (const ip of ["2001:db8:0:8::1", "192.0.2.1"]) {
      const { read } = send(from(ip, "/quick"));
      await waitFor(`the answer to ${ip}`, () => read().endsWith("ok"));
    }
    const { read } = send(from("2001:db8:0:7:ffff::1", "/quick"));
    await waitFor("the refusal", () => read().startsWith("HTTP/1.1 503"));
  });
});

describe("upgraded connections", () => {
  const upgrade = get("/ws", "Connection: Upgrade", "Upgrade: websocket");

  test("upgraded connections take concurrency slots of their own per address, and release them when they close", async () => {
    const app = await startApp((_req, res: ServerResponse) => void res.end("ok"));
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.on("error", () => {});
      socket.on("end", () => socket.end());
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    gate = await openGate({ ...OPEN, app, config: { limits: { upgradesMax: 4, addressShare: 0.5 } } });
    const first = [send(upgrade), send(upgrade)];
    for (const { read } of first) await waitFor("the upgrade", () => read().startsWith("HTTP/1.1 101"));
    const refused = send(upgrade);
    await waitFor("the refusal", () => read503(refused.read()));
    const other = send(upgrade, "127.0.0.2");
    await waitFor("the upgrade of another address", () => other.read().startsWith("HTTP/1.1 101"));
    // Requests do not compete with upgraded connections.
    expect((await call(gate.port)).status).toBe(200);
    first[0]?.socket.destroy();
    await waitFor("the place to be free", async () => (await requestsIn("upgraded")) < 3);
    const later = send(upgrade);
    await waitFor("the later upgrade", () => later.read().startsWith("HTTP/1.1 101"));
  });

  test("a declined upgrade releases its concurrency slot", async () => {
    const app = await startApp((_req, res) => void res.writeHead(404).end());
    gate = await openGate({ ...OPEN, app });
    const { read } = send(upgrade);
    await waitFor("the app's answer", () => read().startsWith("HTTP/1.1 404"));
    await waitFor("the place to be free", async () => (await requestsIn("upgraded")) === 0);
  });
});

const read503 = (text: string): boolean => text.startsWith("HTTP/1.1 503") && text.includes("/errors/upstream_busy");
