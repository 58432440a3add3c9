import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import { startEnvoy } from "./envoy.ts";
import type { Gateway } from "./suite.ts";
import { openWorld, type World } from "./world.ts";

/* Envoy's rate limit filter calls the gate as in the example; grpc-server.test.ts tests the decisions. */

const HOUR = 3_600_000;
const CLIENT = "generic_key=everyone|remote_address=127.0.0.1";

let world: World;
let gateway: Gateway;
beforeAll(async () => {
  world = await openWorld();
  await world.records.putAny("namespace", "rlns_edge", { id: "rlns_edge", name: "edge" });
  await world.records.putAny("namespaceName", "edge", { id: "rlns_edge", name: "edge" });
  gateway = await startEnvoy(world, "envoy-grpc.yaml", { "port_value: 8003": `port_value: ${world.grpcPort}` });
}, 900_000);
afterAll(async () => {
  await gateway?.close();
  await world?.close();
});

const ask = (headers: Record<string, string> = {}) => {
  world.app.seen.length = 0;
  return call(gateway.port, { path: "/public", headers });
};

describe("Envoy with the rate limit service", () => {
  test("Envoy admits a client without a matching override", async () => {
    for (let at = 0; at < 5; at++) expect((await ask()).status, gateway.log()).toBe(200);
  });

  test("Envoy applies an override to a client and reports remaining count and retry time", async () => {
    await world.records.putOverride("rlns_edge", {
      id: "rlor_1",
      identifier: CLIENT,
      limit: 2,
      durationMs: HOUR,
      async: false,
    });
    const first = await waitFor("the override to be known", async () => {
      const response = await ask();
      return response.headers["ratelimit-limit"] === "2" && response;
    });
    expect(first).toMatchObject({ status: 200, headers: { "ratelimit-remaining": "1" } });
    expect((await ask()).headers["ratelimit-remaining"]).toBe("0");
    const refused = await ask({ "X-Forwarded-For": "203.0.113.9" });
    expect(refused.status, gateway.log()).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(refused.headers).toMatchObject({ "ratelimit-limit": "2", "ratelimit-remaining": "0" });
    expect(world.app.seen).toEqual([]);
  });

  test("gate behind Envoy counts locally while Redis is unavailable, as its policy says", async () => {
    await world.redis.kill("SIGKILL");
    await waitFor("what is counted here alone to be used up", async () => (await ask()).status === 429);
    expect(world.app.seen).toEqual([]);
  });

  test("Envoy admits no request without the gate", async () => {
    world.gate.process.kill("SIGKILL");
    await world.gate.process.exited;
    expect((await ask()).status).toBeGreaterThanOrEqual(500);
    expect(world.app.seen).toEqual([]);
  });
});
