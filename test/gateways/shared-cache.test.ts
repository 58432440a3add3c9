import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { aRule, call, openGate, startApp, type TestGate } from "../harness/gate.ts";
import { findDebianGateway } from "../harness/parts/gateways.ts";
import { freePort } from "../harness/ports.ts";
import { startGateway } from "./programs.ts";
import type { Gateway } from "./suite.ts";

/* A shared cache in front of a gate. The cache recognizes only Authorization as a credential. */

let gate: TestGate;
let cache: Gateway;
let served = 0;
beforeAll(async () => {
  const { program: nginx } = await findDebianGateway("nginx");
  const app = await startApp((req, res) => {
    served += 1;
    const query = new URL(req.url ?? "", "http://a").searchParams;
    const headers = query.getAll("cc").map((value): [string, string] => ["Cache-Control", value]);
    res.writeHead(200, [...headers, ["Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"]].flat());
    res.end(`response ${served}`);
  });
  const rules = [aRule({ path: { prefix: "/open" }, access: "Anonymous" })];
  gate = await openGate({ app, policy: { rules, credentials: [{ in: "header", name: "X-API-Key" }] } });
  const port = await freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  cache = await startGateway({
    name: "nginx",
    port,
    files: (dir) => ({
      "nginx.conf": `error_log stderr warn; pid ${dir}/pid; daemon off; worker_processes 1;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  proxy_cache_path ${dir}/cache keys_zone=all:1m;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://127.0.0.1:${gate.port}; proxy_cache all; proxy_cache_valid 200 1h; }
  }
}`,
    }),
    command: (dir) => [nginx, "-c", join(dir, "nginx.conf"), "-p", dir],
  });
});
afterAll(async () => {
  await cache?.close();
  await gate?.close();
});

test.each([
  { said: [], isPrivate: true },
  { said: ["max-age=60"], isPrivate: true },
  { said: ["max-age=60", "stale-if-error=5"], isPrivate: true },
  { said: ["max-age=60, x-public"], isPrivate: true },
  { said: ["public, max-age=60"], isPrivate: false },
  { said: ["max-age=1", "S-Maxage=60"], isPrivate: false },
])(
  "response to a request with a key is marked private ($isPrivate) if the app sends Cache-Control $said",
  async ({ said, isPrivate }) => {
    const key = await gate.records.putKey();
    const path = `/data?${said.map((value) => `cc=${encodeURIComponent(value)}`).join("&")}`;
    const first = await call(cache.port, { path, headers: { "X-API-Key": key } });
    expect(first.status).toBe(200);
    expect(first.headers["cache-control"]).toBe([...said, ...(isPrivate ? ["private"] : [])].join(", "));
    const stranger = await call(cache.port, { path });
    expect(stranger.status).toBe(isPrivate ? 401 : 200);
    if (!isPrivate) expect(stranger.body).toBe(first.body);
  },
);

test("response that needs no key may be stored by a shared cache", async () => {
  const first = await call(cache.port, { path: "/open" });
  expect(first.headers["cache-control"]).toBeUndefined();
  expect((await call(cache.port, { path: "/open" })).body).toBe(first.body);
});
