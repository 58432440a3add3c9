import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { call, kindOf, OPEN, openGate, startApp, type TestGate, waitFor } from "../test/harness/gate.ts";

/** Sends one request on a kept connection; returns the `Connection` header of the response. */
async function keptCall(port: number, agent: Agent): Promise<string | undefined> {
  const req = request({ host: "127.0.0.1", port, agent }).end();
  const [res] = (await once(req, "response")) as [IncomingMessage];
  for await (const _ of res);
  return res.headers.connection;
}

const callAdmin = ({ sidecar }: TestGate, path: string, headers: Record<string, string> = {}) =>
  call(Number(new URL(sidecar.adminUrl).port), { path, headers });

function keptAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

test("gate becomes unready at pod termination and closes connections after their next response", async () => {
  const gate = await openGate({ ...OPEN, timeouts: { drainMs: 60_000 }, config: { hookToken: "t1" } });
  const agent = keptAgent();
  expect(await keptCall(gate.port, agent)).toBe("keep-alive");
  expect((await callAdmin(gate, "/drain", { "Postern-Hook-Token": "t1" })).status).toBe(200);
  expect((await gate.readyz()).status).toBe(503);
  expect(await keptCall(gate.port, agent)).toBe("close");
  const fresh = await call(gate.port);
  expect([fresh.status, fresh.headers.connection]).toEqual([200, "close"]);
  // The drain ends early because the app is unreachable.
  await gate.app.close();
  const from = performance.now();
  await gate.close();
  expect(performance.now() - from).toBeLessThan(30_000);
});

test("only a caller with the token can start a gate drain", async () => {
  const gate = await openGate({ ...OPEN, config: { hookToken: "t1" } });
  const without = await openGate(OPEN);
  for (const headers of [{}, { "Postern-Hook-Token": "" }, { "Postern-Hook-Token": "t2" }]) {
    expect((await callAdmin(gate, "/drain", headers)).status).toBe(403);
    expect((await callAdmin(without, "/drain", headers)).status).toBe(404);
  }
  expect([(await gate.readyz()).status, (await without.readyz()).status]).toEqual([200, 200]);
  await Promise.all([gate.close(), without.close()]);
});

test("gate closes idle connections when the drain ends", async () => {
  const gate = await openGate({ ...OPEN, timeouts: { drainMs: 1_000 }, config: { hookToken: "t1" } });
  const agent = keptAgent();
  await keptCall(gate.port, agent);
  const socket = Object.values(agent.freeSockets).flatMap((sockets) => sockets ?? [])[0];
  if (socket === undefined) throw new Error("there is no idle connection");
  const from = performance.now();
  const closed = once(socket, "close");
  await callAdmin(gate, "/drain", { "Postern-Hook-Token": "t1" });
  await closed;
  expect(performance.now() - from).toBeGreaterThan(900);
  // The app may still be running, and clients may not be notified yet: new connections are served.
  expect((await call(gate.port)).status).toBe(200);
  await gate.close();
});

test("gate drain time after a signal counts from the start of pod termination", async () => {
  const gate = await openGate({ ...OPEN, timeouts: { drainMs: 1_000 }, config: { hookToken: "t1" } });
  const from = performance.now();
  await callAdmin(gate, "/drain", { "Postern-Hook-Token": "t1" });
  await callAdmin(gate, "/drain", { "Postern-Hook-Token": "t1" });
  await waitFor("most of the time to be over", () => performance.now() - from > 800);
  const closing = gate.sidecar.close();
  expect((await call(gate.port)).status).toBe(200);
  await closing;
  expect(performance.now() - from).toBeGreaterThan(990);
  await expect(call(gate.port)).rejects.toThrow("ECONNREFUSED");
  await gate.close();
});

test("gate is unready while the app refuses connections, and ready again afterwards", async () => {
  const app = await startApp();
  const gate = await openGate({ ...OPEN, app });
  const [first, idle] = [keptAgent(), keptAgent()];
  await keptCall(gate.port, first);
  await keptCall(gate.port, idle);
  const socket = Object.values(idle.freeSockets).flatMap((sockets) => sockets ?? [])[0];
  if (socket === undefined) throw new Error("there is no idle connection");
  const closed = once(socket, "close");
  await app.close();
  // A request on a connection that the app has just closed fails too; only a refused connection shows that the app is unreachable.
  const refused = await waitFor("the app to be found away", async () => {
    const response = await call(gate.port);
    return (await gate.readyz()).status === 503 && response;
  });
  expect([refused.status, kindOf(refused), refused.headers.connection]).toEqual([502, "upstream_unreachable", "close"]);
  expect(JSON.parse((await gate.readyz()).body).app).toBe("away");
  await closed;

  const again = createServer((_req, res) => res.end("back"));
  again.listen(Number(new URL(app.url).port), "127.0.0.1");
  await waitFor("the gate to be ready again", async () => (await gate.readyz()).status === 200);
  expect(await keptCall(gate.port, keptAgent())).toBe("keep-alive");
  await gate.close();
  again.close();
  again.closeAllConnections();
});

test("gate stays ready while the app has not started yet", async () => {
  const app = await startApp();
  await app.close();
  const gate = await openGate({ ...OPEN, app });
  expect((await call(gate.port)).status).toBe(502);
  expect((await gate.readyz()).status).toBe(200);
  await gate.close();
});

test("gate ends a long drain early when the app has stopped", async () => {
  const gate = await openGate({ ...OPEN, timeouts: { drainMs: 600_000 } });
  expect((await call(gate.port)).status).toBe(200);
  await gate.app.close();
  const silent = connect(gate.port, "127.0.0.1");
  await once(silent, "connect");
  silent.on("error", () => undefined);
  await gate.close();
});
