import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { call, OPEN, openGate, readAll, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/* Uploads in sequence on a kept connection, and one that waits for its concurrency slot at the app. */

let gate: TestGate;
afterEach(() => gate.close());

test.each([1_000, 60_000, 100_000, 1_000_000])(
  "gate forwards ten uploads of %i bytes with Content-Length and chunked coding",
  async (bytes) => {
    gate = await openGate(OPEN);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const upload = (isChunked: boolean): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers: Record<string, string> = isChunked
          ? { "Transfer-Encoding": "chunked" }
          : { "Content-Length": String(bytes) };
        const req = request({ port: gate.port, method: "POST", path: "/upload", agent, headers }, (res) => {
          ports.add(req.socket?.localPort);
          res.resume().on("end", () => resolve(res.statusCode));
        });
        req.setTimeout(3_000, () => req.destroy(new Error("no response")));
        req.on("error", reject).end(Buffer.alloc(bytes, "x"));
      });
    for (let i = 0; i < 10; i++) expect(await upload(i % 2 === 0)).toBe(200);
    agent.destroy();
    expect(ports.size).toBe(1);
    expect(gate.app.seen.map(({ body }) => body.length)).toEqual(Array.from({ length: 10 }, () => bytes));
  },
);

test.each([
  { bytes: 77_862, coding: "length" },
  { bytes: 77_862, coding: "chunked" },
  { bytes: 1_000_000, coding: "length" },
  { bytes: 1_000_000, coding: "chunked" },
] as const)("gate buffers an upload of $bytes bytes ($coding) that waits for a concurrency slot", async (upload) => {
  const held: ServerResponse[] = [];
  const received: number[] = [];
  const app = await startApp((req, res) => {
    if (req.method === "GET") held.push(res);
    let bytes = 0;
    req.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    if (req.method === "POST") req.on("end", () => res.end(String(received.push(bytes))));
  });
  gate = await openGate({ ...OPEN, app, config: { limits: { upstreamConnectionsMax: 1, addressShare: 1 } } });
  const first = call(gate.port, { path: "/first" });
  await waitFor("the first to have the place", () => held.length === 1);

  const { bytes, coding } = upload;
  const body = Buffer.alloc(bytes, "x");
  const client = connect(gate.port, "127.0.0.1");
  const read = readAll(client);
  client.write("POST /upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
  if (coding === "length") client.write(`Content-Length: ${bytes}\r\n\r\n`);
  else client.write(`Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n`);
  client.write(body);
  if (coding === "chunked") client.write("\r\n0\r\n\r\n");
  await waitFor("the upload to be in line", async () =>
    (await gate.metrics()).includes('postern_sidecar_upstream_requests{state="queued"} 1'),
  );
  held[0]?.end("done");
  expect((await first).status).toBe(200);
  await waitFor("the answer to the upload", () => read().includes("HTTP/1.1 200"));
  expect(received).toEqual([bytes]);
  client.destroy();
});

test.each(["length", "chunked"] as const)(
  "upload (%s) arrives unchanged at an app that pauses between reads",
  async (coding) => {
    const hash = createHash("sha256");
    const app = await startApp((req, res) => {
      req.on("data", (piece: Buffer) => {
        hash.update(piece);
        req.pause();
        setTimeout(() => req.resume(), 1);
      });
      req.on("end", () => res.end(hash.digest("hex")));
    });
    gate = await openGate({ ...OPEN, app });
    const body = randomBytes(8 * 1024 * 1024);
    const headers: Record<string, string> =
      coding === "chunked" ? { "Transfer-Encoding": "chunked" } : { "Content-Length": String(body.length) };
    const req = request({ port: gate.port, method: "POST", path: "/upload", headers });
    const response = once(req, "response") as Promise<[IncomingMessage]>;
    req.end(body);
    const [answer] = await response;
    expect(await text(answer)).toBe(createHash("sha256").update(body).digest("hex"));
  },
);

test("pipelined uploads reach the app unchanged even if one read contains bytes of several", async () => {
  const hashes: string[] = [];
  const app = await startApp((req, res) => {
    const hash = createHash("sha256");
    req.on("data", (piece: Buffer) => hash.update(piece));
    req.on("end", () => setTimeout(() => res.end(String(hashes.push(hash.digest("hex")))), 50));
  });
  gate = await openGate({ ...OPEN, app });
  const bodies = Array.from({ length: 4 }, (_, i) => randomBytes(200_000 + 50_000 * i));
  const client = connect(gate.port, "127.0.0.1");
  readAll(client);
  const requests = bodies.flatMap((body, i) => {
    const close = i === bodies.length - 1 ? "Connection: close\r\n" : "";
    return [Buffer.from(`POST /${i} HTTP/1.1\r\nHost: a\r\n${close}Content-Length: ${body.length}\r\n\r\n`), body];
  });
  client.write(Buffer.concat(requests));
  await once(client, "close");
  expect(hashes).toEqual(bodies.map((body) => createHash("sha256").update(body).digest("hex")));
});
