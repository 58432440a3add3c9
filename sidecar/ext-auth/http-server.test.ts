import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type ExtAuthOptions, openGateWithExtAuth } from "../../test/harness/ext-auth.ts";
import { aRule, call, kindOf, readAll, sendRaw, type TestGate, waitFor } from "../../test/harness/gate.ts";

/* The HTTP ext-auth endpoint alone; test/gateways calls it through real gateways. */

let gate: TestGate | undefined;
afterEach(async () => {
  await gate?.close();
  gate = undefined;
});

async function openExtAuth(options?: ExtAuthOptions): Promise<{ gate: TestGate; port: number }> {
  const opened = await openGateWithExtAuth("authorize", options);
  gate = opened.gate;
  return opened;
}

const about = (method: string, target: string, more: Record<string, string> = {}) => ({
  path: "/authorize",
  headers: { "X-Original-Method": method, "X-Original-URI": target, "X-Forwarded-For": "192.0.2.7", ...more },
});

describe("responses", () => {
  test("ext-auth HTTP response has identity headers for the app and forbids caching", async () => {
    const { gate, port } = await openExtAuth();
    const key = await gate.records.putKey({ keyId: "key_1", permissions: ["a", "b"] });
    const response = await call(port, about("GET", "/%6frders?x=%20", { "X-API-Key": key }));
    expect(response).toMatchObject({
      status: 200,
      body: "",
      headers: {
        "x-postern-key-id": "key_1",
        "x-postern-permissions": "a b",
        "x-postern-target": "/orders?x=%20",
        "cache-control": "no-store",
      },
    });
    expect(response.headers["x-postern-request-id"]).toBe(response.headers["x-request-id"]);
    expect(JSON.stringify(response)).not.toContain(key);
    expect(gate.app.seen).toEqual([]);
  });

  test.each(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"])(
    "ext-auth HTTP response is the same for method %s",
    async (method) => {
      const { gate, port } = await openExtAuth({
        policy: { rules: [aRule({ methods: ["PATCH"], permissions: "a" })] },
      });
      const key = await gate.records.putKey();
      const body = ["POST", "PUT"].includes(method) ? "x".repeat(60_000) : undefined;
      const question = { method, ...(body === undefined ? {} : { body }) };
      expect((await call(port, { ...about("GET", "/", { "X-API-Key": key }), ...question })).status).toBe(200);
      expect((await call(port, { ...about("PATCH", "/", { "X-API-Key": key }), ...question })).status).toBe(403);
    },
  );

  test("ext-auth HTTP response for a denied request has the error for the client", async () => {
    const { port } = await openExtAuth();
    const response = await call(port, about("GET", "/"));
    expect(response).toMatchObject({ status: 401, headers: { "www-authenticate": 'Bearer realm="postern"' } });
    expect(kindOf(response)).toBe("unauthorized");
  });

  test("ext-auth HTTP endpoint responds 503 with Retry-After without a policy", async () => {
    const { port } = await openExtAuth({ ready: false });
    const response = await call(port, about("GET", "/"));
    expect(response).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  });

  test("ext-auth HTTP response lists headers for Envoy to remove, but not the identity headers that it sets", async () => {
    const { gate, port } = await openExtAuth();
    const key = await gate.records.putKey({ keyId: "key_1" });
    const headers = { "X-API-Key": key, "X-Postern-Roles": "forged", x_postern_key_id: "forged", "X-Other": "1" };
    const response = await call(port, { path: "/authorize/orders", headers });
    expect(response.status).toBe(200);
    const removed = String(response.headers["x-envoy-auth-headers-to-remove"]).split(",");
    expect(removed.sort()).toEqual(["x-api-key", "x-postern-roles", "x_postern_key_id"]);
  });
});

describe("rejected check requests", () => {
  test("ext-auth HTTP endpoint rejects every request from an untrusted address", async () => {
    const { gate, port } = await openExtAuth({ trusted: "10.0.0.0/8" });
    const key = await gate.records.putKey();
    const response = await call(port, about("GET", "/", { "X-API-Key": key, "X-Forwarded-For": "10.0.0.1" }));
    expect(response.status).toBe(403);
    expect(response.body).toContain("is not a trusted gateway");
    expect(await gate.metrics()).toContain('postern_sidecar_ext_auth_rejected_total{reason="untrusted"} 1');
    expect(await gate.metrics()).toContain('postern_sidecar_requests_total{code="VALID"} 0');
  });

  test("ext-auth HTTP endpoint rejects an ambiguous or incomplete check request", async () => {
    const { gate, port } = await openExtAuth();
    const key = await gate.records.putKey();
    const response = await call(port, about("GET", "/", { "X-API-Key": key, "X-Forwarded-Uri": "/public" }));
    expect(response.status).toBe(400);
    expect(await gate.metrics()).toContain('postern_sidecar_ext_auth_rejected_total{reason="malformed"} 1');
  });

  test("ext-auth HTTP endpoint rejects requests for another path", async () => {
    const { port } = await openExtAuth();
    expect((await call(port, { path: "/" })).status).toBe(404);
  });
});

describe("limits of the ext-auth endpoint", () => {
  test("ext-auth HTTP endpoint closes a connection whose body never ends", async () => {
    const { port } = await openExtAuth();
    const socket = connect({ host: "127.0.0.1", port });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    readAll(socket);
    socket.write("POST /authorize HTTP/1.1\r\nHost: g\r\nContent-Length: 100000000\r\n\r\n");
    const piece = Buffer.alloc(16 * 1024);
    const writing = setInterval(() => socket.writable && socket.write(piece), 1);
    await closed;
    clearInterval(writing);
  });

  test("ext-auth HTTP endpoint closes only the connection with an invalid or oversized head", async () => {
    const { gate, port } = await openExtAuth();
    expect((await sendRaw(port, `GET /authorize HTTP/1.1\r\nX: ${"x".repeat(100_000)}\r\n\r\n`)).status).toBe(431);
    expect((await sendRaw(port, "\x16\x03\x01 hello\r\n\r\n")).status).toBe(400);
    const key = await gate.records.putKey();
    expect((await call(port, about("GET", "/", { "X-API-Key": key }))).status).toBe(200);
  });
});

test("ext-auth decisions are counted in the same metrics as forwarded requests", async () => {
  const { gate, port } = await openExtAuth();
  const key = await gate.records.putKey({ keyId: "key_1" });
  await call(port, about("GET", "/", { "X-API-Key": key }));
  await call(port, about("GET", "/"));
  const metrics = await gate.metrics();
  expect(metrics).toContain('postern_sidecar_requests_total{code="VALID"} 1');
  expect(metrics).toContain('postern_sidecar_requests_total{code="MISSING_KEY"} 1');
});

test("gate with only an ext-auth endpoint becomes ready and closes connections during drain", async () => {
  const { gate, port } = await openExtAuth({ config: { upstream: undefined }, timeouts: { drainMs: 1_000 } });
  expect(gate.sidecar.url).toBeUndefined();
  expect((await gate.readyz()).status).toBe(200);
  const key = await gate.records.putKey();
  const question = about("GET", "/", { "X-API-Key": key, Connection: "keep-alive" });
  expect((await call(port, question)).headers.connection).toBe("keep-alive");
  void gate.sidecar.close();
  await waitFor("the gate to be unready", async () => (await gate.readyz()).status === 503);
  expect(await call(port, question)).toMatchObject({ status: 200, headers: { connection: "close" } });
});
