import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import {
  type GateOptions,
  OPEN,
  openGate,
  readAll,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";
import { GOAWAY, RawHttp2Client } from "../../test/harness/http2-client.ts";
import type { Limits } from "../config.ts";

/* Clients without a key that hold all connections of the gate do not prevent active clients from being served. */

const folder = openCertificateFolder();
const certificate = folder.make("connection-limit");
let gate: TestGate;
let sockets: Socket[] = [];
let sessions: ClientHttp2Session[] = [];
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const session of sessions) session.destroy();
  sockets = [];
  sessions = [];
  await gate.close();
});
afterAll(() => folder.remove());

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

const open = async (limits: Partial<Limits>, options: GateOptions = {}): Promise<void> => {
  const config = { ...options.config, limits: { addressShare: 1, ...limits } };
  gate = await openGate({ ...OPEN, ...options, config, timeouts: { closeMs: 100 } });
};

interface Dialled {
  readonly socket: Socket;
  readonly read: () => string;
  isClosed: boolean;
}

/** Returns when the gate has accepted or rejected the connection. */
async function dial(bytes = "", localAddress = "127.0.0.1"): Promise<Dialled> {
  const before = await counted();
  const socket = connect({ host: "127.0.0.1", port: gate.port, localAddress });
  sockets.push(socket);
  const client = { socket, read: readAll(socket), isClosed: false };
  socket.on("error", () => undefined).on("close", () => (client.isClosed = true));
  await once(socket, "connect");
  await waitFor("the gate to have it", async () => (await counted()) !== before);
  if (bytes !== "") socket.write(bytes);
  return client;
}

const metricOf = async (name: string): Promise<number> => {
  const line = (await gate.metrics()).split("\n").find((text) => text.startsWith(`${name} `));
  return Number(line?.split(" ").at(-1));
};
const openOf = (protocol: string): Promise<number> => metricOf(`postern_sidecar_connections{protocol="${protocol}"}`);
const limitActionsOf = (protocol: string, done: string): Promise<number> =>
  metricOf(`postern_sidecar_connection_limit_total{protocol="${protocol}",action="${done}"}`);

async function counted(): Promise<string> {
  const taken = (await gate.metrics()).split("\n").filter((line) => line.startsWith("postern_sidecar_connection"));
  return taken.join();
}

const answered = (client: Dialled): Promise<unknown> =>
  waitFor("the answer", () => client.read().startsWith("HTTP/1.1 200"));

/** Starts an app that never responds. */
const silent = () => startApp(() => undefined);

describe("HTTP/1.1", () => {
  test("connection limit evicts the HTTP/1.1 connection that has been idle longest", async () => {
    await open({ clientConnectionsMax: 3 });
    const asked = await dial(GET);
    await answered(asked);
    const [fresh, partial] = [await dial(), await dial("GET / HT")];
    const next = await dial(GET);
    await answered(next);
    await waitFor("the longest idle to be closed", () => asked.isClosed);
    expect([fresh.isClosed, partial.isClosed]).toEqual([false, false]);
    const last = await dial(GET);
    await answered(last);
    await waitFor("the next to be closed", () => fresh.isClosed);
    expect([partial.isClosed, next.isClosed, await limitActionsOf("http1", "evicted")]).toEqual([false, false, 2]);
    expect(await openOf("http1")).toBe(3);
  });

  test("client that keeps its connections open after rejections cannot block other clients", async () => {
    await open({ clientConnectionsMax: 3 }, { policy: { rules: [] } });
    const held: Dialled[] = [];
    for (let i = 0; i < 3; i++) {
      // The rest of the body never arrives.
      const client = await dial("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
      await waitFor("the refusal", () => client.read().startsWith("HTTP/1.1 4"));
      held.push(client);
    }
    const next = await dial(GET);
    await waitFor("its answer", () => next.read().startsWith("HTTP/1.1 4"));
    await waitFor("the first to be closed", () => held[0]?.isClosed === true);
  });

  test("connection limit responds 503 to a new connection when all others are active", async () => {
    const held: Array<() => void> = [];
    const app = await startApp((_req, res) => void held.push(() => res.end("ok")));
    await open({ clientConnectionsMax: 2 }, { app });
    const busy = [await dial(GET), await dial(GET)];
    await waitFor("the app to have both", () => held.length === 2);
    const refused = await dial();
    await waitFor("it to be closed", () => refused.isClosed);
    expect(refused.read()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n.*connection: close/s);
    expect([await limitActionsOf("http1", "rejected"), await openOf("http1")]).toEqual([1, 2]);
    for (const respond of held) respond();
    for (const client of busy) await answered(client);
  });

  test("connection limit caps the share of one address, except for a trusted proxy", async () => {
    const share = { clientConnectionsMax: 4, addressShare: 0.5 };
    const clientAddress = { from: "forwardedFor" as const, trustedProxies: ["127.0.0.3"] };
    await open(share, { app: await silent(), policy: { ...OPEN.policy, clientAddress } });
    for (let i = 0; i < 2; i++) await dial(GET);
    await waitFor("both to be under way", async () => (await metricOf("postern_sidecar_in_flight")) === 2);
    const third = await dial();
    await waitFor("the third to be refused", () => third.read().startsWith("HTTP/1.1 503"));
    const other = await dial(GET, "127.0.0.2");
    const proxy = await dial(GET, "127.0.0.3");
    await waitFor("theirs to be under way", async () => (await metricOf("postern_sidecar_in_flight")) === 4);
    expect([other.isClosed, proxy.isClosed]).toEqual([false, false]);
  });

  test("upgraded connections do not count toward the HTTP connection limit", async () => {
    const app = await startApp((_req, res) => void res.end("ok"));
    app.server.on("upgrade", (_req, socket: Socket) => {
      socket.on("error", () => undefined).on("end", () => socket.end());
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    await open({ clientConnectionsMax: 1 }, { app });
    const upgraded = await dial("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await waitFor("the upgrade", () => upgraded.read().startsWith("HTTP/1.1 101"));
    expect(await openOf("http1")).toBe(0);
    await answered(await dial(GET));
    expect([upgraded.isClosed, await limitActionsOf("http1", "evicted")]).toEqual([false, 0]);
  });
});

describe("HTTP/2", () => {
  const raw = async (): Promise<RawHttp2Client> => {
    const client = new RawHttp2Client(gate.port);
    sockets.push(client.socket);
    return client.open();
  };

  test("connection limit sends GOAWAY to the HTTP/2 session that has been idle longest", async () => {
    await open({ clientHttp2ConnectionsMax: 2 });
    const [first, second] = [await raw(), await raw()];
    await waitFor("both to be taken", async () => (await openOf("http2")) === 2);
    const third = await raw();
    await waitFor("the first to be told", () => first.frames.some(({ type }) => type === GOAWAY));
    await waitFor("it to be closed", () => first.socket.destroyed || first.socket.readableEnded);
    await waitFor("the third to be taken", async () => (await openOf("http2")) === 2);
    const isOpen = [second, third].map(({ socket }) => !socket.readableEnded);
    expect([isOpen, await limitActionsOf("http2", "evicted"), await openOf("http1")]).toEqual([[true, true], 1, 0]);
  });

  test("connection limit rejects a new HTTP/2 session with GOAWAY when all have streams", async () => {
    const app = await startApp((req, res) => {
      if (req.url !== "/stay") res.end("ok");
    });
    await open({ clientHttp2ConnectionsMax: 1 }, { app });
    const busy = connectHttp2(`http://127.0.0.1:${gate.port}`).on("error", () => undefined);
    sessions.push(busy);
    busy.request({ ":path": "/stay" }).on("error", () => undefined);
    await waitFor("its stream", async () => (await metricOf("postern_sidecar_in_flight")) === 1);
    const next = connectHttp2(`http://127.0.0.1:${gate.port}`).on("error", () => undefined);
    sessions.push(next);
    const codes: number[] = [];
    next.on("goaway", (code) => codes.push(code));
    await waitFor("the next to be closed", () => next.destroyed);
    expect([codes, busy.destroyed, await limitActionsOf("http2", "rejected")]).toEqual([[11], false, 1]);
    await answered(await dial(GET));
  });
});

describe("TLS", () => {
  test("connection limit counts and evicts connections that wait in a TLS handshake", async () => {
    await open({ clientConnectionsMax: 2 }, { config: { tls: () => certificate } });
    const waiting = [await dial(), await dial()];
    const asking = connectTls({ host: "127.0.0.1", port: gate.port, ca: certificate.cert });
    sockets.push(asking);
    const read = readAll(asking);
    await once(asking, "secureConnect");
    await waitFor("the first to be closed", () => waiting[0]?.isClosed === true);
    asking.write(GET);
    await waitFor("the answer", () => read().startsWith("HTTP/1.1 200"));
    expect([waiting[1]?.isClosed, await openOf("http1")]).toEqual([false, 2]);
    asking.destroy();
    await waitFor("its room", async () => (await openOf("http1")) === 1);
  });

  test("connection above the limit is closed before its TLS handshake", async () => {
    await open({ clientConnectionsMax: 1 }, { app: await silent(), config: { tls: () => certificate } });
    const busy = connectTls({ host: "127.0.0.1", port: gate.port, ca: certificate.cert }).on("error", () => undefined);
    sockets.push(busy);
    await once(busy, "secureConnect");
    busy.write(GET);
    await waitFor("its request", async () => (await metricOf("postern_sidecar_in_flight")) === 1);
    const refused = await dial();
    await waitFor("it to be closed", () => refused.isClosed);
    expect([refused.read(), busy.destroyed, await limitActionsOf("http1", "rejected")]).toEqual(["", false, 1]);
  });
});
