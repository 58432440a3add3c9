import { once } from "node:events";
import { request } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/* TLS handshakes that never end or fail. */

const folder = openCertificateFolder();
const certificate = folder.make("api");
let t: TestApp;
let port: number;
beforeAll(async () => {
  t = await buildTestApp({ certificate, requestTimeoutMs: 500 });
  await t.app.listen({ host: "127.0.0.1", port: 0 });
  port = (t.app.server.address() as AddressInfo).port;
});
afterAll(async () => {
  await t.close();
  folder.remove();
});

/** Unlike `once`, resolves even after an earlier error. */
const closed = (socket: Socket): Promise<void> => new Promise((done) => socket.once("close", () => done()));

test.each([
  ["sends nothing", ""],
  ["sends half a ClientHello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
])("connection of a TLS client that %s is closed after the request header timeout", async (_, bytes) => {
  const socket = connect({ host: "127.0.0.1", port }).on("error", () => undefined);
  socket.resume().write(bytes, "latin1");
  const startedMs = performance.now();
  await closed(socket);
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});

test("connection with a failed TLS handshake is closed immediately without affecting others", async () => {
  const startedMs = performance.now();
  const plain = connect({ host: "127.0.0.1", port }).on("error", () => undefined);
  plain.resume().write("GET /v2/liveness HTTP/1.1\r\nHost: a\r\n\r\n");
  // The client does not trust the certificate.
  const wary = connectTls({ host: "127.0.0.1", port }).on("error", () => undefined);
  const other = connectTls({ host: "127.0.0.1", port, ALPNProtocols: ["h2"], ca: certificate.cert });
  other.on("error", () => undefined);
  await Promise.all([plain, wary, other].map(closed));
  expect(performance.now() - startedMs).toBeLessThan(1_000);
  const req = request({ host: "127.0.0.1", port, path: "/v2/liveness", ca: certificate.cert }).end();
  const [res] = await once(req, "response");
  expect(res.statusCode).toBe(200);
  req.destroy();
});
