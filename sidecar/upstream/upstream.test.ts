import { request, type ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import {
  call,
  type GateOptions,
  kindOf,
  OPEN,
  openGate,
  startApp,
  type TestGate,
  waitFor,
} from "../../test/harness/gate.ts";

/* The limit on connections to the app: a burst waits in the sidecar instead of overwhelming the app. */

let gate: TestGate;
afterEach(() => gate.close());

/** Opens an app that holds every request until it is released. */
async function openToHolding(
  options: GateOptions,
): Promise<{ held: ServerResponse[]; paths: string[]; sockets: Set<unknown> }> {
  const held: ServerResponse[] = [];
  const paths: string[] = [];
  const sockets = new Set<unknown>();
  const app = await startApp((req, res) => {
    sockets.add(req.socket);
    paths.push(req.url ?? "");
    held.push(res);
  });
  gate = await openGate({ ...OPEN, ...options, app });
  return { held, paths, sockets };
}

test("gate serves a burst of requests within the upstream connection limit", async () => {
  const { held, sockets } = await openToHolding({ config: { limits: { upstreamConnectionsMax: 5, addressShare: 1 } } });
  const responses = Array.from({ length: 60 }, (_, i) => call(gate.port, { path: `/${i}` }));
  for (let answered = 0; answered < 60; answered += 5) {
    await waitFor("five to be under way", () => held.length === 5);
    for (const res of held.splice(0)) res.end("done");
  }
  for (const { status, body } of await Promise.all(responses)) expect([status, body]).toEqual([200, "done"]);
  expect(sockets.size).toBeLessThanOrEqual(5);
});

test("queued request fails after the connect timeout without reaching the app", async () => {
  const { held, paths } = await openToHolding({
    config: { limits: { upstreamConnectionsMax: 1 } },
    timeouts: { connectMs: 200 },
  });
  const first = call(gate.port, { path: "/first" });
  await waitFor("the first to arrive", () => held.length === 1);
  const [second, third] = await Promise.all([
    call(gate.port, { path: "/second" }),
    call(gate.port, { path: "/third" }),
  ]);
  expect([second.status, third.status]).toEqual([503, 503]);
  expect(kindOf(second)).toBe("upstream_busy");
  held[0]?.end("done");
  expect((await first).status).toBe(200);
  const later = call(gate.port, { path: "/later" });
  await waitFor("the later one to arrive", () => held.length === 2);
  held[1]?.end("done");
  expect((await later).status).toBe(200);
  expect(paths).toEqual(["/first", "/later"]);
});

test("aborted request leaves the upstream queue", async () => {
  const { held, paths } = await openToHolding({ config: { limits: { upstreamConnectionsMax: 1 } } });
  const first = call(gate.port, { path: "/first" });
  await waitFor("the first to arrive", () => held.length === 1);
  const inFlight = async (count: number) => (await gate.metrics()).includes(`postern_sidecar_in_flight ${count}\n`);
  const leaver = request({ host: "127.0.0.1", port: gate.port, path: "/leaver", agent: false }).end();
  leaver.on("error", () => undefined);
  await waitFor("the leaver to be in line", () => inFlight(2));
  const last = call(gate.port, { path: "/last" });
  await waitFor("the last to be in line", () => inFlight(3));
  // A reset, because a client that only half-closes may still wait for its response.
  leaver.socket?.resetAndDestroy();
  await waitFor("the leaver to be gone", () => inFlight(2));
  held[0]?.end("done");
  expect((await first).status).toBe(200);
  await waitFor("the last to arrive", () => held.length === 2);
  held[1]?.end("done");
  expect((await last).status).toBe(200);
  expect(paths).toEqual(["/first", "/last"]);
});
