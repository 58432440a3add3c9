import { EventEmitter, once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { call, readAll } from "../../test/harness/gate.ts";
import { guardEmits, guardedMessages, guardRun, guardServer } from "./guard.ts";

let server: Server;
const faults: unknown[] = [];
const onInternalError = (error: unknown): void => void faults.push(error);
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  faults.length = 0;
});

async function listen(): Promise<number> {
  server = createServer(guardedMessages(onInternalError));
  guardServer(server, onInternalError);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const boom = (): never => {
  throw new Error("boom");
};

test.each([
  { where: "of the server", spoil: () => server.prependListener("request", boom) },
  { where: "of the request's body", spoil: () => server.on("request", (req) => req.on("data", boom)) },
  { where: "of the request's end", spoil: () => server.on("request", (req) => req.on("end", boom).resume()) },
  { where: "of the answer", spoil: () => server.on("request", (_req, res) => res.on("finish", boom).flushHeaders()) },
  { where: "of the connection", spoil: () => server.on("connection", (socket) => socket.on("close", boom)) },
])("guarded server closes only the connection whose listener throws $where", async ({ spoil }) => {
  const port = await listen();
  const other = connect(port, "127.0.0.1");
  const readOther = readAll(other);
  await once(other, "connect");
  server.once("request", () => undefined);
  const answering = (_req: unknown, res: { end(text: string): void }) => setImmediate(() => res.end("ok"));
  spoil();
  server.on("request", answering);
  const spoilt = connect(port, "127.0.0.1");
  spoilt.on("error", () => undefined).resume();
  spoilt.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody");
  await once(spoilt, "close");
  expect(faults.map(String)).toContain("Error: boom");

  server.removeAllListeners("request");
  server.on("request", answering);
  other.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  await once(other, "close");
  expect(readOther()).toMatch(/^HTTP\/1\.1 200 /);
  expect((await call(port)).status).toBe(200);
});

test("guarded server closes an upgraded connection whose listener throws", async () => {
  const port = await listen();
  server.on("upgrade", (_req, socket: Socket) => socket.on("data", boom).write("HTTP/1.1 101 Go\r\n\r\n"));
  const client = connect(port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n");
  await once(client, "data");
  client.write("now");
  await once(client.resume(), "close");
  expect(faults.map(String)).toContain("Error: boom");
});

test("guarded server reports an unhandled error event as an internal error", () => {
  const emitter = new EventEmitter();
  guardEmits(emitter, ({ error }) => onInternalError(error));
  emitter.emit("error", new Error("unheard"));
  expect(faults.map(String)).toEqual(["Error: unheard"]);
});

test("guarded emitter keeps listener arguments and the result of `emit`", () => {
  const emitter = new EventEmitter();
  guardEmits(emitter, ({ error }) => onInternalError(error));
  const got: unknown[] = [];
  emitter.on("a", (...args) => void got.push(...args));
  expect([emitter.emit("a", 1, undefined), emitter.emit("b")]).toEqual([true, false]);
  expect(got).toEqual([1, undefined]);
});

test("guarded timer callback that throws is reported as an internal error", () => {
  guardRun(boom, onInternalError);
  expect(faults.map(String)).toEqual(["Error: boom"]);
});
