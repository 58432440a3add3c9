import { execFile } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseIpRange } from "../../core/verification/ip-address.ts";
import { openGate, type TestGate } from "../harness/gate.ts";
import { findDebianGateway, findGrpcurl } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import type { Gateway } from "./suite.ts";

/*
 * gRPC over HTTP/2 all the way: grpcurl, HAProxy, a gate, and a gRPC app, for which another gate's door stands: it has health, and reflection,
 * which is streamed both ways. grpcurl asks for reflection first, so one question is two calls.
 */

const HEALTH = "grpc.health.v1.Health/Check";

let grpcurl: string;
let app: TestGate;
let gate: TestGate;
let gateway: Gateway;

const configFor = (port: number, gatePort: number): string => `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 127.0.0.1:${port} proto h2
  default_backend gate
backend gate
  server gate 127.0.0.1:${gatePort} proto h2
`;

beforeAll(async () => {
  grpcurl = await findGrpcurl();
  const haproxy = await findDebianGateway("haproxy");
  const loopback = parseIpRange("127.0.0.1");
  if (loopback === undefined) throw new Error("no range");
  const doors = { grpc: { host: "127.0.0.1", port: 0 }, trusted: [loopback] };
  app = await openGate({ config: { upstream: undefined, doors } });
  gate = await openGate({ config: { upstream: app.sidecar.grpcUrl, upstreamProtocol: "h2c" } });
  const port = await freePort();
  gateway = await startGateway({
    name: "haproxy",
    port,
    files: () => ({ "haproxy.cfg": configFor(port, gate.port) }),
    command: (dir) => [haproxy, "-db", "-f", `${dir}/haproxy.cfg`],
  });
}, 900_000);
afterAll(async () => {
  await gateway?.close();
  await gate?.close();
  await app?.close();
});

const ask = (key: string): Promise<{ text: string; error: string }> =>
  new Promise((resolve) => {
    const args = ["-plaintext", "-max-time", "20", "-H", `authorization: Bearer ${key}`];
    execFile(grpcurl, [...args, `127.0.0.1:${gateway.port}`, HEALTH], (_error, text, error) =>
      resolve({ text, error }),
    );
  });

describe("grpcurl by HAProxy", () => {
  test("with a valid key gets the app's answers, unary and streamed", async () => {
    const key = await gate.records.putKey();
    const { text, error } = await ask(key);
    expect(error).toBe("");
    expect(JSON.parse(text)).toEqual({ status: "SERVING" });
  });

  test("without one is told so in the words of gRPC", async () => {
    const { text, error } = await ask("wrong");
    expect(text).toBe("");
    expect(error).toContain("Unauthenticated");
    expect(error).toContain("The API key is not known here.");
  });
});
