import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { openCertificateFolder } from "../../test/harness/certificate.ts";
import { call, kindOf, OPEN, openGate, type TestGate } from "../../test/harness/gate.ts";

/* An app behind TLS: its certificate must be trusted by Node and valid for the host. */

const before = getCACertificates("default");
const folder = openCertificateFolder();
const { key, cert } = folder.make("app");
let gate: TestGate;
let app: ReturnType<typeof createServer>;
let url: string;
beforeAll(async () => {
  app = createServer({ key, cert }, (req, res) => {
    req.on("data", (piece) => res.write(piece)).on("end", () => res.end(`over ${req.url}`));
  });
  const sockets = new WebSocketServer({ server: app });
  sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  url = `https://127.0.0.1:${(app.address() as AddressInfo).port}`;
});
afterAll(() => {
  app.closeAllConnections();
  app.close();
  folder.remove();
});
afterEach(async () => {
  setDefaultCACertificates(before);
  await gate.close();
});

test("gate forwards requests and WebSockets to a TLS app on reused connections", async () => {
  setDefaultCACertificates([...before, cert]);
  gate = await openGate({ ...OPEN, config: { upstream: url } });
  let connections = 0;
  app.on("secureConnection", () => {
    connections += 1;
  });
  for (let i = 0; i < 5; i++) expect((await call(gate.port, { path: `/${i}` })).body).toBe(`over /${i}`);
  expect(connections).toBe(1);
  const large = "x".repeat(300_000);
  expect((await call(gate.port, { method: "POST", path: "/p", body: large })).body).toBe(`${large}over /p`);
  const socket = new WebSocket(`ws://127.0.0.1:${gate.port}/chat`);
  await once(socket, "open");
  socket.send(large);
  const [echo] = await once(socket, "message");
  expect(String(echo)).toBe(large);
  socket.terminate();
});

test("gate responds 502 when the TLS certificate of the app is untrusted", async () => {
  gate = await openGate({ ...OPEN, config: { upstream: url } });
  const response = await call(gate.port);
  expect([response.status, kindOf(response)]).toEqual([502, "upstream_unreachable"]);
});
