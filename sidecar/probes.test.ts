import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcp, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { GateProbe } from "../core/gates/probes.ts";
import { call } from "../test/harness/gate.ts";
import { freePort } from "../test/harness/ports.ts";
import { createAdminServer } from "./admin.ts";
import { createProbes } from "./probes.ts";

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const PATH = "/probes/app/livenessProbe";
const run = async (probe: GateProbe["probe"], timeoutMs = 1_000) =>
  await createProbes([{ path: PATH, timeoutMs, probe }]).run(PATH);

test.each([
  { status: 200, ok: true },
  { status: 302, ok: true },
  { status: 404, ok: false },
  { status: 503, ok: false },
])("upstream probe with app status $status succeeds or fails as expected ($ok)", async ({ status, ok }) => {
  const seen: IncomingMessage[] = [];
  const app = createServer((req, res) => {
    seen.push(req);
    res.writeHead(status, { location: "/elsewhere" }).end("a secret of the app");
  });
  const port = await listen(app);
  const headers = [{ name: "Host", value: "shop.example" }];
  const result = await run({ kind: "http", port, target: "/live?deep=1", isTls: false, headers });
  expect(result).toEqual({ ok, detail: `answered ${status}` });
  expect(seen).toHaveLength(1);
  expect(seen[0]).toMatchObject({ url: "/live?deep=1", method: "GET", headers: { host: "shop.example" } });
});

test("upstream probe fails when the app is unreachable or times out", async () => {
  const closed = await freePort();
  for (const kind of ["tcp", "grpc", "http"] as const) {
    const probe = { kind, port: closed, target: "/", isTls: false, headers: [], service: "" } as GateProbe["probe"];
    expect(await run(probe)).toEqual({ ok: false, detail: "not reached: ECONNREFUSED" });
  }
  const silent = await listen(createTcp((socket) => void socket.on("error", () => undefined)));
  expect(await run({ kind: "http", port: silent, target: "/", isTls: false, headers: [] }, 50)).toEqual({
    ok: false,
    detail: "no response within 50 ms",
  });
  expect(await run({ kind: "tcp", port: silent })).toMatchObject({ ok: true });
});

test("gRPC upstream probe checks the service that the probe names", async () => {
  const asked: string[] = [];
  const app = createHttp2();
  app.on("stream", async (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    asked.push(`${headers[":path"]} ${Buffer.concat(chunks).toString("hex")}`);
    const isServing = asked.length === 1;
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0x08, isServing ? 1 : 2]));
  });
  const port = await listen(app);
  expect(await run({ kind: "grpc", port, service: "a.B" })).toEqual({ ok: true, detail: "serving" });
  expect(await run({ kind: "grpc", port, service: "" })).toEqual({ ok: false, detail: "not serving" });
  expect(asked).toEqual([
    "/grpc.health.v1.Health/Check 00000000050a03612e42",
    "/grpc.health.v1.Health/Check 0000000000",
  ]);
});

test("admin port runs only configured probes, and concurrent callers share one run", async () => {
  const seen: string[] = [];
  const app = createServer((req, res) => {
    seen.push(`${req.method} ${req.url} ${req.headers.authorization}`);
    setTimeout(() => res.end("a secret of the app"), 50);
  });
  const port = await listen(app);
  const probe: GateProbe["probe"] = { kind: "http", port, target: "/live", isTls: false, headers: [] };
  const admin = createAdminServer({
    readiness: () => ({ ready: true, detail: {} }),
    metrics: async () => ({ type: "text/plain", text: "" }),
    probes: createProbes([{ path: PATH, timeoutMs: 1_000, probe }]),
    onInternalError: () => undefined,
  });
  const adminPort = await listen(admin);
  const headers = { authorization: "Bearer of the caller" };
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => call(adminPort, { path: `${PATH}?path=/admin`, headers })),
  );
  expect(new Set(responses.map(({ status, body }) => `${status} ${body}`))).toEqual(new Set(["200 answered 200\n"]));
  expect(seen).toEqual(["GET /live undefined"]);
  for (const path of ["/probes/app/readinessProbe", `${PATH}/`, `${PATH}/../x`, "/probes/", "/probes/__proto__"]) {
    expect((await call(adminPort, { path })).status).toBe(404);
  }
  expect((await call(adminPort, { path: PATH, method: "POST" })).status).toBe(405);
  expect(seen).toHaveLength(1);
});
