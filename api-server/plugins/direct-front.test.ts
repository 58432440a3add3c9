import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type CertificateFolder, openCertificateFolder, type TestCertificate } from "../../test/harness/certificate.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { createDirectFront } from "./direct-front.ts";

/* Clients that do not read, at a direct front whose procedure answers with many bytes. */

const RESPONSE = "x".repeat(60_000);
/** More than the kernel takes. */
const LARGE_RESPONSE = RESPONSE.repeat(500);
/** Node's sockets take more up to this. */
const HIGH_WATER_MARK = 65_536;
const READ_MS = 300;
const KEEP_ALIVE_MS = 500;

let server: Server;
let certificate: TestCertificate;
let certificates: CertificateFolder;
beforeAll(() => {
  certificates = openCertificateFolder();
  certificate = certificates.make("front");
});
afterAll(() => certificates.remove());
let client: Socket | undefined;
let served = 0;
let servedAtNode = 0;
afterEach(() => {
  client?.destroy();
  server.close();
  server.closeAllConnections();
});

/** Returns a client that does not read, and its connection at the server. */
async function open(
  responses: "at once" | "later",
  { readMs = READ_MS, isTls = false } = {},
): Promise<{ socket: Socket; atServer: Socket }> {
  served = 0;
  servedAtNode = 0;
  const serveAtNode: RequestListener = (request, response) => {
    if (request.url !== "/early") request.resume();
    servedAtNode += 1;
    if (request.url === "/silent") return;
    response.end(request.url === "/node-large" ? LARGE_RESPONSE : "from Node");
  };
  const options = { keepAliveTimeout: KEEP_ALIVE_MS };
  const { cert, key } = certificate;
  server = isTls ? createTlsServer({ ...options, cert, key }, serveAtNode) : createServer(options, serveAtNode);
  const direct = createDirectFront(
    server,
    {
      nextRequestId: () => "req_1",
      addressBehindProxies: undefined,
      onInternalError: (error) => {
        throw error;
      },
    },
    { readMs },
  );
  direct.add({
    url: "/hot",
    config: {},
    serve: (_request, reply) => {
      served += 1;
      if (responses === "at once") reply.send(RESPONSE);
      else setImmediate(() => reply.send(RESPONSE));
    },
  });
  direct.add({ url: "/large", config: {}, serve: (_request, reply) => reply.send(LARGE_RESPONSE) });
  direct.add({
    url: "/last",
    config: {},
    serve: (_request, reply) => reply.header("Connection", "close").send(LARGE_RESPONSE),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, isTls ? "secureConnection" : "connection") as Promise<[Socket]>;
  const address = { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  client = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
  client.on("error", () => undefined);
  const [atServer] = await accepted;
  return { socket: client, atServer };
}

const requests = (count: number, path = "/hot"): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`.repeat(
    count,
  );

/** Until nothing moves any more, as long as the kernel has room for answers. */
async function settled(atServer: Socket): Promise<void> {
  let before = -1;
  await waitFor("the server to stop", () => {
    const isStill = served === before && served > 0;
    before = served;
    return isStill && atServer.writableLength > 0;
  });
}

describe.each([
  { responses: "at once", isTls: false },
  { responses: "later", isTls: false },
  { responses: "at once", isTls: true },
  { responses: "later", isTls: true },
] as const)("a client that leaves responses unread, $answers, by TLS: $isTls", ({ responses, isTls }) => {
  test("direct front stops serving requests when responses fill the socket", async () => {
    const { socket, atServer } = await open(responses, { isTls });
    socket.write(requests(400));
    await settled(atServer);
    expect(served).toBeLessThan(200);
    expect(atServer.writableLength).toBeLessThan(HIGH_WATER_MARK + 61_000);
    let received = 0;
    socket.on("data", ({ length }: Buffer) => {
      received += length;
    });
    await waitFor("all answers", () => served === 400 && received > 400 * RESPONSE.length);
  });

  test("direct front stops reading from a client that does not read its responses", async () => {
    const { socket, atServer } = await open(responses, { isTls });
    for (let i = 0; i < 400; i += 1) socket.write(requests(400));
    await settled(atServer);
    expect(served).toBeLessThan(200);
    expect(atServer.bytesRead).toBeLessThanOrEqual(3 * HIGH_WATER_MARK);
  });
});

test.each([
  { name: "with others after it", sent: requests(400) },
  { name: "that is the last of its connection", sent: requests(1, "/last") },
])("direct front closes a connection whose response stays unread too long: a response $name", async ({ sent }) => {
  const { socket, atServer } = await open("at once");
  socket.write(sent);
  await waitFor("the end", () => atServer.destroyed);
});

test("direct front gives a slow reader the full timeout for its next request", async () => {
  const { socket, atServer } = await open("at once", { readMs: 60_000 });
  socket.write(requests(1, "/large"));
  await waitFor("the answer to be there", () => atServer.writableLength > 0);
  await sleep(1.5 * KEEP_ALIVE_MS);
  socket.resume();
  await waitFor("it to be taken", () => atServer.writableLength === 0);
  // The connections are looked at in between.
  await sleep(0.7 * KEEP_ALIVE_MS);
  socket.write(requests(1));
  await waitFor("one more to be served", () => served === 1);
});

describe("a connection that Node serves in between", () => {
  test("idle connection is closed after the keep-alive timeout of the server", async () => {
    const { socket, atServer } = await open("at once");
    socket.resume();
    socket.write(requests(1) + requests(1, "/other"));
    await waitFor("Node to serve", () => servedAtNode === 1);
    await sleep(0.5 * KEEP_ALIVE_MS);
    expect(atServer.destroyed).toBe(false);
    await waitFor("the connection to close", () => atServer.destroyed);
  });

  test("connection is closed if its client does not read Node's response", async () => {
    const { socket, atServer } = await open("at once");
    server.timeout = READ_MS;
    socket.write(requests(1, "/node-large"));
    await waitFor("the connection to close", () => atServer.destroyed);
  });

  test("connection stays open between requests for longer than Node's read timeout", async () => {
    const { socket, atServer } = await open("at once", { readMs: 100 });
    server.timeout = 100;
    socket.resume();
    socket.write(requests(1, "/other"));
    await sleep(0.7 * KEEP_ALIVE_MS);
    expect(atServer.destroyed).toBe(false);
    socket.write(requests(1));
    await waitFor("the direct front to serve", () => served === 1);
    expect(servedAtNode).toBe(1);
  });

  test("server shutdown closes idle connections, but not those with a request that the direct front is serving", async () => {
    const { socket, atServer } = await open("at once", { readMs: 60_000 });
    socket.write(requests(1, "/other"));
    await waitFor("Node to serve", () => servedAtNode === 1);
    socket.write(requests(1, "/large"));
    await waitFor("the response to fill the socket", () => atServer.writableLength > 0);
    server.closeIdleConnections();
    await sleep(50);
    expect(atServer.destroyed).toBe(false);
    socket.resume();
    await waitFor("the response to be read", () => atServer.writableLength === 0);
    server.closeIdleConnections();
    await waitFor("the connection to close", () => atServer.destroyed);
  });

  test("client disconnect ends a response that Node is sending", async () => {
    const { socket } = await open("at once");
    const requested = once(server, "request") as Promise<[IncomingMessage, ServerResponse]>;
    socket.write(requests(1, "/silent"));
    const [, response] = await requested;
    const closed = once(response, "close");
    socket.resetAndDestroy();
    await closed;
    expect(response.writableFinished).toBe(false);
  });

  test("server buffers little for a client that sends endlessly and reads nothing", async () => {
    const { socket, atServer } = await open("at once", { readMs: 60_000 });
    for (let i = 0; i < 400; i += 1) socket.write(requests(200) + requests(200, "/other"));
    await settled(atServer);
    expect(atServer.bytesRead).toBeLessThanOrEqual(4 * HIGH_WATER_MARK);
    expect(atServer.writableLength).toBeLessThan(HIGH_WATER_MARK + 61_000);
  });

  test("connection returns to the direct front when Node responds before the body has arrived", async () => {
    const { socket } = await open("at once");
    socket.resume();
    const early = requests(1, "/early").replace("Content-Length: 2", "Content-Length: 1000000");
    socket.write(early);
    await waitFor("Node to respond", () => servedAtNode === 1);
    socket.write(" ".repeat(999_998) + requests(2));
    await waitFor("the direct front to serve", () => served === 2);
    expect(servedAtNode).toBe(1);
  });
});
