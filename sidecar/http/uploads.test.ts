import { Agent, request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { OPEN, openGate, type TestGate } from "../../test/harness/gate.ts";

/* Uploads one after another on a connection that is kept. */

let gate: TestGate;
afterEach(() => gate.close());

test.each([1_000, 60_000, 100_000, 1_000_000])("ten of %i bytes, with a length and in chunks", async (bytes) => {
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
});
