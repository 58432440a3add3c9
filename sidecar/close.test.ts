import { once } from "node:events";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { call, OPEN, openGate, startApp } from "../test/harness/gate.ts";

test("gate shutdown completes requests in flight and rejects new connections", async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  const app = await startApp((_req, res) => asked.resolve(res));
  const gate = await openGate({ ...OPEN, app });
  const response = call(gate.port);
  const atApp = await asked.promise;
  const closed = gate.sidecar.close();
  await expect(call(gate.port)).rejects.toThrow("ECONNREFUSED");
  atApp.end("late, but whole");
  const { status, body, headers } = await response;
  expect([status, body, headers.connection]).toEqual([200, "late, but whole", "close"]);
  await closed;
  await gate.close();
});

test("gate shutdown aborts requests that exceed the drain timeout", async () => {
  const asked = Promise.withResolvers<void>();
  const app = await startApp(() => asked.resolve());
  const gate = await openGate({ ...OPEN, app, timeouts: { closeMs: 100 } });
  const failed = expect(call(gate.port)).rejects.toThrow();
  await asked.promise;
  const from = performance.now();
  await gate.sidecar.close();
  expect(performance.now() - from).toBeLessThan(1_500);
  await failed;
  await gate.close();
});

test("gate shutdown closes idle connections immediately", async () => {
  const gate = await openGate(OPEN);
  const agent = new Agent({ keepAlive: true });
  const req = request({ port: gate.port, host: "127.0.0.1", agent }).end();
  const [res] = (await once(req, "response")) as [IncomingMessage];
  res.resume();
  await once(res, "end");
  const silent = connect(gate.port, "127.0.0.1");
  silent.on("error", () => {});
  await once(silent, "connect");
  const from = performance.now();
  await gate.sidecar.close();
  expect(performance.now() - from).toBeLessThan(1_000);
  agent.destroy();
  silent.destroy();
  await gate.close();
});

test("closing a gate twice has no further effect", async () => {
  const gate = await openGate(OPEN);
  await Promise.all([gate.sidecar.close(), gate.sidecar.close()]);
  await gate.close();
});

test("gate startup fails with an error when its port is in use", async () => {
  const gate = await openGate(OPEN);
  await expect(openGate({ ...OPEN, config: { listen: { host: "127.0.0.1", port: gate.port } } })).rejects.toThrow(
    "EADDRINUSE",
  );
  await gate.close();
});

test("gate admin port serves only probes and metrics", async () => {
  const gate = await openGate(OPEN);
  const port = Number(new URL(gate.sidecar.adminUrl).port);
  const ask = async (path: string, method = "GET") => (await call(port, { path, method })).status;
  expect([await ask("/livez"), await ask("/readyz"), await ask("/metrics?x")]).toEqual([200, 200, 200]);
  expect([await ask("/"), await ask("/a"), await ask("/livez", "POST")]).toEqual([404, 404, 405]);
  const metrics = await gate.metrics();
  expect(metrics).toContain('postern_sidecar_decision_duration_seconds_bucket{le="+Inf"}');
  expect(metrics).toMatch(/postern_sidecar_staleness_seconds \d/);
  expect(metrics).toMatch(/postern_sidecar_source_usable 1/);
  expect(metrics).toMatch(/postern_sidecar_invalid_values_total\{kind="heartbeat"\} 0/);
  await gate.close();
});
