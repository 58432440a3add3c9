import { execFile } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { parseIpRange } from "../../core/verification/ip-address.ts";
import { openGate, startApp, type TestGate } from "../harness/gate.ts";
import { findDebianGateway, findEnvoy, findGrpcurl } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { runEnvoy } from "./envoy.ts";
import { startGateway } from "./programs.ts";
import type { Gateway } from "./suite.ts";

/*
 * gRPC over HTTP/2 end to end: grpcurl, a gateway, a gate and a gRPC app. The ext-auth endpoint of another gate serves as app: it has
 * health, and reflection with bidirectional streams. grpcurl uses reflection first, so each request is two calls. Envoy also forwards
 * WebSockets over HTTP/2.
 */

const HEALTH = "grpc.health.v1.Health/Check";

let grpcurl: string;
let app: TestGate;
let gate: TestGate;
/** A gate in front of a WebSocket app. */
let socketGate: TestGate;
let sockets: WebSocketServer;

const HAPROXY = (port: number): string => `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend clients
  bind 127.0.0.1:${port} proto h2
  default_backend gate
backend gate
  server gate 127.0.0.1:${gate.port} proto h2
`;

const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
const NGINX = (port: number, dir: string): string => `error_log stderr warn; pid ${dir}/pid; worker_processes 1;
events {}
http {
  access_log off;
  ${TEMPORARY.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  server {
    listen 127.0.0.1:${port} http2;
    location / { grpc_pass grpc://127.0.0.1:${gate.port}; }
  }
}
`;

const CLUSTER = (name: string, port: number): string => `
  - name: ${name}
    type: STATIC
    load_assignment:
      cluster_name: ${name}
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ${port} } } } }] }]
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: { allow_connect: true } }`;
const ENVOY = (port: number): string => `static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: ${port} } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: clients
          codec_type: AUTO
          upgrade_configs: [{ upgrade_type: websocket }]
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - { match: { prefix: /chat }, route: { cluster: sockets } }
              - { match: { prefix: / }, route: { cluster: gate, timeout: 0s } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:${CLUSTER("gate", gate.port)}${CLUSTER("sockets", socketGate.port)}
`;

beforeAll(async () => {
  // A first installation takes longer than the gate may go without a heartbeat.
  [grpcurl] = await Promise.all([findGrpcurl(), findEnvoy(), findDebianGateway("nginx"), findDebianGateway("haproxy")]);
  const loopback = parseIpRange("127.0.0.1");
  if (loopback === undefined) throw new Error("no range");
  const extAuth = { grpc: { host: "127.0.0.1", port: 0 }, trusted: [loopback] };
  app = await openGate({ config: { upstream: undefined, extAuth } });
  gate = await openGate({ config: { upstream: app.sidecar.grpcUrl, upstreamProtocol: "h2c" } });
  const socketApp = await startApp();
  sockets = new WebSocketServer({ server: socketApp.server });
  sockets.on("connection", (socket, request) => {
    socket.send(`hello ${request.headers["x-postern-key-id"]}`);
    socket.on("message", (data) => socket.send(data));
  });
  socketGate = await openGate({ app: socketApp });
}, 900_000);
afterAll(async () => {
  for (const client of sockets?.clients ?? []) client.terminate();
  sockets?.close();
  await socketGate?.close();
  await gate?.close();
  await app?.close();
});

const ask = (port: number, key: string): Promise<{ text: string; error: string }> =>
  new Promise((resolve) => {
    const args = ["-plaintext", "-max-time", "20", "-H", `authorization: Bearer ${key}`];
    execFile(grpcurl, [...args, `127.0.0.1:${port}`, HEALTH], (_error, text, error) => resolve({ text, error }));
  });

describe.each<{ name: string; start: (port: number) => Promise<Gateway> }>([
  {
    name: "HAProxy",
    start: async (port) => {
      const { program: haproxy } = await findDebianGateway("haproxy");
      const files = () => ({ "haproxy.cfg": HAPROXY(port) });
      return startGateway({
        name: "haproxy",
        port,
        files,
        command: (dir) => [haproxy, "-db", "-f", `${dir}/haproxy.cfg`],
      });
    },
  },
  {
    name: "nginx",
    start: async (port) => {
      const { program: nginx } = await findDebianGateway("nginx");
      return startGateway({
        name: "nginx",
        port,
        files: (dir) => ({ "nginx.conf": NGINX(port, dir) }),
        command: (dir) => [nginx, "-p", dir, "-c", `${dir}/nginx.conf`, "-g", "daemon off; master_process off;"],
      });
    },
  },
  { name: "Envoy", start: (port) => runEnvoy(port, ENVOY(port)) },
])("grpcurl by $name", ({ start }) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await start(await freePort());
  }, 900_000);
  afterAll(() => gateway?.close());

  test("grpcurl with a valid key gets unary and streamed responses", async () => {
    const key = await gate.records.putKey();
    const { text, error } = await ask(gateway.port, key);
    expect(error, gateway.log()).toBe("");
    expect(JSON.parse(text)).toEqual({ status: "SERVING" });
  });

  test("grpcurl without a valid key gets a gRPC error", async () => {
    const { text, error } = await ask(gateway.port, "wrong");
    expect(text).toBe("");
    expect(error, gateway.log()).toContain("Unauthenticated");
    expect(error).toContain("The API key does not exist.");
  });
});

describe("a WebSocket by Envoy, which sends it to the gate over HTTP/2", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    const port = await freePort();
    gateway = await runEnvoy(port, ENVOY(port));
  }, 900_000);
  afterAll(() => gateway?.close());
  const open = (key: string): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`, { headers: { Authorization: `Bearer ${key}` } });

  test("WebSocket through Envoy with a valid key works in both directions", async () => {
    const socket = open(await socketGate.records.putKey({ keyId: "key_ws" }));
    const [hello] = await once(socket, "message");
    expect(String(hello), gateway.log()).toBe("hello key_ws");
    const large = Buffer.alloc(1024 * 1024, "y");
    socket.send(large);
    const [echoed] = await once(socket, "message");
    expect(Buffer.compare(echoed as Buffer, large)).toBe(0);
    socket.close(4000, "done");
    const [code] = await once(socket, "close");
    expect(code).toBe(4000);
  });

  test("WebSocket through Envoy without a valid key gets the gate's rejection", async () => {
    const socket = open("wrong");
    socket.on("error", () => undefined);
    const [, response] = await once(socket, "unexpected-response");
    expect(response.statusCode, gateway.log()).toBe(401);
    expect(response.headers["www-authenticate"]).toContain("Bearer");
    response.destroy();
  });
});
