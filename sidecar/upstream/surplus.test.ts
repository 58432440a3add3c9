import type { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { call, OPEN, openGate, startApp, type TestGate, waitFor } from "../../test/harness/gate.ts";

/* Bytes that an app sends after its response must not become the response to another client's request. */

let gate: TestGate;
afterEach(() => gate.close());

const respond = (text: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;

/** Opens a gate with one concurrency slot, and an app that the test makes respond on its socket. */
async function openToOnePlace(): Promise<{ asked: Array<{ url: string; socket: Socket }> }> {
  const app = await startApp();
  const asked: Array<{ url: string; socket: Socket }> = [];
  app.server.removeAllListeners("request");
  app.server.on("request", (req) => asked.push({ url: req.url ?? "", socket: req.socket }));
  gate = await openGate({ ...OPEN, app, config: { limits: { upstreamConnectionsMax: 1, addressShare: 1 } } });
  return { asked };
}

test.each([
  { name: "of a length", first: respond("first") },
  { name: "in chunks", first: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n" },
  {
    name: "that ends its connection with a trailer",
    first: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\nConnection: close\r\n\r\n",
    planted: "",
  },
  { name: "without content", first: "HTTP/1.1 204 No Content\r\n\r\n" },
])(
  "surplus data after a response $name does not affect the next queued request",
  async ({ first, planted = respond("planted") }) => {
    const { asked } = await openToOnePlace();
    const one = call(gate.port, { path: "/one" });
    await waitFor("the first request", () => asked.length === 1);
    const two = call(gate.port, { path: "/two" });
    await waitFor("the second to wait for a place", async () =>
      (await gate.metrics()).includes('postern_sidecar_upstream_requests{state="queued"} 1'),
    );
    asked[0]?.socket.write(first + planted);
    expect((await one).status).toBe(first.startsWith("HTTP/1.1 204") ? 204 : 200);
    await waitFor("the second request", () => asked.length === 2);
    asked[1]?.socket.write(respond("second"));
    expect((await two).body).toBe("second");
    expect(asked[1]?.socket).not.toBe(asked[0]?.socket);
  },
);

test("gate opens new upstream connections after an app sends two responses to one request", async () => {
  const { asked } = await openToOnePlace();
  const call1 = call(gate.port, { path: "/one" });
  await waitFor("the first request", () => asked.length === 1);
  asked[0]?.socket.write(respond("first"));
  expect((await call1).body).toBe("first");
  asked[0]?.socket.write(respond("late"));
  await waitFor("the late response to be counted", async () =>
    (await gate.metrics()).includes("postern_sidecar_upstream_unrequested_total 1"),
  );
  for (const path of ["/two", "/three"]) {
    const before = asked.length;
    const next = call(gate.port, { path });
    await waitFor(path, () => asked.length === before + 1);
    asked[before]?.socket.write(respond(path));
    expect((await next).body).toBe(path);
  }
  expect(new Set(asked.map(({ socket }) => socket)).size).toBe(3);
});

test("gate reuses the upstream connection of an app with one response per request", async () => {
  const { asked } = await openToOnePlace();
  for (const path of ["/one", "/two"]) {
    const before = asked.length;
    const next = call(gate.port, { path });
    await waitFor(path, () => asked.length === before + 1);
    asked[before]?.socket.write(respond(path));
    expect((await next).body).toBe(path);
  }
  expect(new Set(asked.map(({ socket }) => socket)).size).toBe(1);
  expect(await gate.metrics()).toContain("postern_sidecar_upstream_unrequested_total 0");
});
