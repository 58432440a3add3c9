import { type AddressInfo, connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/* Which connection the server closes at its connection limit. */

const folder = openCertificateFolder();
const certificate = folder.make("api");
afterAll(() => folder.remove());

interface Client {
  readonly socket: Socket;
  received: string;
}

let t: TestApp;
let clients: Client[] = [];
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  await t.close();
});

async function start(options: Parameters<typeof buildTestApp>[0]): Promise<void> {
  t = await buildTestApp(options);
  await t.app.listen({ host: "127.0.0.1", port: 0 });
}

function open({ from = "127.0.0.1", isTls = false } = {}): Client {
  const socket = connect({ host: "127.0.0.1", localAddress: from, port: (t.app.server.address() as AddressInfo).port });
  socket.on("error", () => undefined);
  const client: Client = {
    socket: isTls ? connectTls({ socket, host: "127.0.0.1", ca: certificate.cert }) : socket,
    received: "",
  };
  client.socket
    .on("error", () => undefined)
    .on("data", (bytes) => {
      client.received += bytes.toString("latin1");
    });
  clients.push(client);
  return client;
}

const metric = async (name: string): Promise<number> => {
  const { body } = await t.app.inject({ method: "GET", url: "/metrics" });
  const line = body.split("\n").find((text) => text.startsWith(`${name} `));
  return Number(line?.split(" ").at(-1));
};
const openConnections = (): Promise<number> => metric("postern_api_connections");
const counted = (action: "evicted" | "rejected"): Promise<number> =>
  metric(`postern_api_connection_limit_total{action="${action}"}`);

async function openOne(options?: Parameters<typeof open>[0]): Promise<Client> {
  const before = await openConnections();
  const client = open(options);
  await waitFor("the connection", async () => (await openConnections()) > before);
  return client;
}

const SIMPLE = "GET /v2/liveness HTTP/1.1\r\nHost: a\r\n\r\n";
const call = (path: string, body: object): string => {
  const text = JSON.stringify(body);
  return `POST /v2/${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${t.workspace.rootKey}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
};
const HALF_A_BODY =
  "POST /v2/apis.createApi HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";

async function answered(client: Client, request: string): Promise<void> {
  const before = client.received.length;
  client.socket.write(request);
  await waitFor("a response", () => client.received.length > before);
}

/** Unlike `once`, resolves even after an earlier error. */
const closing = (socket: Socket): Promise<void> => new Promise((done) => socket.once("close", () => done()));

/** Sends a request and waits until its handler runs. */
async function begun(client: Client, request: string): Promise<void> {
  const sentMs = performance.now();
  let isAtNode = false;
  t.app.server.once("request", () => {
    isAtNode = true;
  });
  client.socket.write(request);
  await waitFor("the request", () => isAtNode || t.app.direct.lastRequestMs() >= sentMs);
}

describe("at the limit", () => {
  test.each([
    { name: "at the direct front", isDirect: true },
    { name: "at Node's server", isDirect: false },
  ])("connection limit $name evicts the connection that has been idle longest", async ({ isDirect }) => {
    await start({ maxConnections: 3, trustedProxies: ["127.0.0.1"] });
    const request = isDirect ? call("keys.verifyKey", { key: "k" }) : SIMPLE;
    const [first, second, third] = [await openOne(), await openOne(), await openOne()];
    for (const client of [second, third, first]) await answered(client, request);
    const closed = closing(second.socket);
    await answered(open(), request);
    await closed;
    expect([first.socket.destroyed, third.socket.destroyed]).toEqual([false, false]);
    expect([await openConnections(), await counted("evicted"), await counted("rejected")]).toEqual([3, 1, 0]);
  });

  test("connection limit evicts a connection whose body does not arrive", async () => {
    await start({ maxConnections: 1, trustedProxies: ["127.0.0.1"] });
    const uploading = await openOne();
    await begun(uploading, HALF_A_BODY);
    const closed = closing(uploading.socket);
    await answered(open(), SIMPLE);
    await closed;
  });

  test.each([
    { name: "at the direct front", path: "keys.verifyKey", body: { key: "k" } },
    { name: "at Node's server", path: "apis.getApi", body: { apiId: "api_missing0" } },
  ])("connection limit $name rejects a new connection when all others are in use", async ({ path, body }) => {
    await start({ maxConnections: 2, trustedProxies: ["127.0.0.1"] });
    const blocker = await t.deps.db.connect();
    await blocker.query("begin");
    await blocker.query("lock table root_keys");
    const working = [await openOne(), await openOne()];
    for (const client of working) await begun(client, call(path, body));
    const next = open();
    await closing(next.socket);
    expect([await counted("evicted"), await counted("rejected")]).toEqual([0, 1]);
    await blocker.query("rollback");
    blocker.release();
    await waitFor("the responses", () => working.every(({ received }) => received.startsWith("HTTP/1.1 ")));
    // Now the server waits for requests of both clients.
    await answered(open(), SIMPLE);
  });

  test("connection limit allows one address half of the connections and then evicts connections of that address", async () => {
    await start({ maxConnections: 4 });
    const own = [await openOne(), await openOne()];
    const closed = closing(own[0]?.socket as Socket);
    await answered(open(), SIMPLE);
    await closed;
    const others = [await openOne({ from: "127.0.0.2" }), await openOne({ from: "127.0.0.3" })];
    for (const { socket } of [...others, own[1] as Client]) expect(socket.destroyed).toBe(false);
    expect(await openConnections()).toBe(4);
  });
});

describe("with TLS", () => {
  test("connection limit counts and evicts TLS handshakes", async () => {
    await start({ maxConnections: 2, certificate, trustedProxies: ["127.0.0.1"] });
    const silent = await openOne();
    const secured = await openOne({ isTls: true });
    await answered(secured, SIMPLE);
    const closed = closing(silent.socket);
    const next = open({ isTls: true });
    await answered(next, SIMPLE);
    await closed;
    await answered(secured, SIMPLE);
    const gone = closing(secured.socket);
    await answered(next, SIMPLE);
    await answered(open({ isTls: true }), SIMPLE);
    await gone;
    expect(next.socket.destroyed).toBe(false);
  });
});
