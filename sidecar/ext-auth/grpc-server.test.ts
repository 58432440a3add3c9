import { execFile } from "node:child_process";
import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { extAuthOf } from "../../test/harness/ext-auth.ts";
import { aRule, call, openGate, type TestGate, waitFor } from "../../test/harness/gate.ts";
import { findGrpcurl } from "../../test/harness/parts/gateways.ts";
import { startProcess } from "../../test/harness/process.ts";

/*
 * The gRPC ext-auth endpoint, called by grpcurl, an independent client that learns the protocol by reflection. test/gateways tests how
 * Envoy uses the responses.
 */

const HOUR = 3_600_000;
const CHECK = "envoy.service.auth.v3.Authorization/Check";
const LIMIT = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH = "grpc.health.v1.Health/Check";

let grpcurl: string;
let gate: TestGate;
let address: string;

const perNamespace = (namespaceId: string) => ({
  scope: { kind: "namespace", namespaceId } as const,
  identifier: "key" as const,
  ...{ limit: 1000, durationMs: HOUR, cost: 1, accuracy: "strict" as const },
});

async function openExtAuth(trusted: string, options: Parameters<typeof openGate>[0] = {}): Promise<[TestGate, string]> {
  const extAuth = extAuthOf(["grpc"], trusted);
  const opened = await openGate({ ...options, config: { upstream: undefined, extAuth } });
  return [opened, new URL(opened.sidecar.grpcUrl ?? "").host];
}

beforeAll(async () => {
  grpcurl = await findGrpcurl();
  const rules = [
    aRule({ path: { prefix: "/admin" }, permissions: "admin" }),
    aRule({ path: { prefix: "/named" }, ratelimits: [perNamespace("rlns_named")] }),
  ];
  const credentials = [
    { in: "header", name: "X-API-Key" },
    { in: "query", name: "key" },
  ] as const;
  [gate, address] = await openExtAuth("127.0.0.1", { policy: { rules, credentials: [...credentials] } });
  for (const name of ["edge", "named"])
    await gate.records.putAny("namespace", `rlns_${name}`, { id: `rlns_${name}`, name });
  await gate.records.putAny("namespace", "rlns_gone", { id: "rlns_gone", name: "gone", deleted: true });
}, 900_000);
afterAll(() => gate?.close());

/** Fields of responses that the tests read, as `grpcurl` prints them: fields with the default of their type are omitted. */
interface SaidJson {
  readonly status: unknown;
  readonly okResponse: { readonly headers: { header: { key: string } }[]; readonly headersToRemove: string[] };
  readonly deniedResponse: { readonly status: unknown; readonly body: string };
  readonly statuses: { durationUntilReset: string }[];
  readonly responseHeadersToAdd: { key: string }[];
}

interface Said {
  /** The tests assert the output field by field. */
  readonly json: Partial<SaidJson> | undefined;
  readonly text: string;
  readonly error: string;
}

const run = (args: readonly string[]): Promise<Said> =>
  new Promise((resolve) => {
    execFile(grpcurl, ["-plaintext", "-max-time", "20", ...args], (_error, stdout, stderr) => {
      let json: Said["json"];
      try {
        json = JSON.parse(stdout);
      } catch {
        // A list of names, or empty.
      }
      resolve({ json, text: stdout, error: stderr });
    });
  });
const ask = (method: string, body: unknown, where = address): Promise<Said> =>
  run(["-d", JSON.stringify(body), where, method]);

describe("reflection", () => {
  test("gRPC reflection lists the services of the ext-auth endpoint", async () => {
    expect((await run([address, "list"])).text.trim().split("\n").sort()).toEqual([
      "envoy.service.auth.v3.Authorization",
      "envoy.service.ratelimit.v3.RateLimitService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  test.each([
    "envoy.service.auth.v3.Authorization",
    "envoy.service.auth.v3.AttributeContext.HttpRequest",
    "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit",
    "google.protobuf.Duration",
  ])("gRPC reflection describes %s", async (symbol) => {
    expect((await run([address, "describe", symbol])).text).toContain(`${symbol} is a`);
  });

  test("gRPC reflection reports an unknown symbol as not found", async () => {
    expect((await run([address, "describe", "envoy.Nothing"])).error).toContain("not found");
  });
});

describe("health", () => {
  test("gRPC health service reports the readiness of the gate", async () => {
    expect((await ask(HEALTH, {})).json).toEqual({ status: "SERVING" });
    expect((await ask(HEALTH, { service: "envoy.service.auth.v3.Authorization" })).json).toEqual({ status: "SERVING" });
    expect((await ask(HEALTH, { service: "nobody" })).error).toContain("NotFound");
  });

  test("gRPC health watch reports NOT_SERVING until the gate has a policy", async () => {
    const [unready, where] = await openExtAuth("127.0.0.1", { ready: false });
    try {
      expect((await ask(HEALTH, {}, where)).json).toEqual({ status: "NOT_SERVING" });
      const { error } = await ask(LIMIT, { domain: "rlns_edge", descriptors: [{ entries: [{ key: "a" }] }] }, where);
      expect(error).toContain("Unavailable");
      const watch = ["-plaintext", "-max-time", "20", "-d", "{}", where, "grpc.health.v1.Health/Watch"];
      const watching = await startProcess(grpcurl, watch, { readyLine: /NOT_SERVING/ });
      await unready.records.putStoredPolicy({ ...gatePolicy(), rules: [] });
      await waitFor("the watch to tell", () => watching.stdout().includes('"SERVING"'));
      await watching.stop();
    } finally {
      await unready.close();
    }
  });
});

const gatePolicy = () => ({
  formatVersion: 1,
  apiId: "api_orders",
  mode: "Enforce",
  credentials: [{ in: "header", name: "X-API-Key" }],
});

const about = (http: Record<string, unknown>) => ({
  attributes: {
    source: { address: { socketAddress: { address: "192.0.2.7", portValue: 4711 } } },
    request: { http: { method: "GET", path: "/", host: "app", ...http } },
  },
});

describe("ext_authz", () => {
  test("ext_authz check admits a valid key and lists headers to set and remove", async () => {
    const key = await gate.records.putKey({ keyId: "key_1" });
    const headers = {
      ":path": "/",
      "x-api-key": key,
      "x-postern-roles": "forged",
      "x-postern-key-id": "forged",
      a: "b",
    };
    const { json } = await ask(CHECK, about({ headers }));
    expect(json?.status).toEqual({});
    const { headers: set, headersToRemove } = json?.okResponse ?? {};
    expect(headersToRemove?.sort()).toEqual(["x-api-key", "x-postern-roles"]);
    expect(set).toContainEqual({
      header: { key: "X-Postern-Key-Id", value: "key_1" },
      appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
    });
    expect(set?.map(({ header }) => header.key)).not.toContain(":path");
  });

  test("ext_authz check replaces the path with its canonical spelling, without the key", async () => {
    const key = await gate.records.putKey();
    const { json } = await ask(CHECK, about({ path: `/%6frders/ä?key=${key}&a=b` }));
    expect(json?.okResponse?.headers).toContainEqual({
      header: { key: ":path", value: "/orders/%C3%A4?a=b" },
      appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
    });
  });

  test.each([
    { name: "no key", http: {}, status: "Unauthorized", code: 16 },
    { name: "a path of dot segments", http: { path: "/a/../admin" }, status: "BadRequest", code: 3 },
    { name: "an unknown key", http: { headers: { "x-api-key": "nobody-has-it" } }, status: "Unauthorized", code: 16 },
  ])("ext_authz check denies $name with status $status", async ({ http, status, code }) => {
    const { json } = await ask(CHECK, about(http));
    expect(json).toMatchObject({ status: { code }, deniedResponse: { status: { code: status } } });
    expect(JSON.parse(json?.deniedResponse?.body ?? "")).toMatchObject({ error: { status: expect.any(Number) } });
  });

  test("ext_authz check denies a key without permission and a key that is sent twice", async () => {
    const key = await gate.records.putKey({ permissions: ["admin"] });
    const poor = await gate.records.putKey();
    const refused = await ask(CHECK, about({ path: "/admin", headers: { "x-api-key": poor } }));
    expect(refused.json?.deniedResponse?.status).toEqual({ code: "Forbidden" });
    const raw = (value: string) => ({ key: "x-api-key", rawValue: Buffer.from(value).toString("base64") });
    const once = await ask(CHECK, about({ path: "/admin", headerMap: { headers: [raw(key)] } }));
    expect(once.json?.okResponse).toBeDefined();
    const twice = await ask(CHECK, about({ path: "/admin", headerMap: { headers: [raw(key), raw(poor)] } }));
    expect(twice.json?.deniedResponse?.status).toEqual({ code: "BadRequest" });
  });

  test("ext_authz check rejects a request without HTTP attributes", async () => {
    expect((await ask(CHECK, { attributes: {} })).error).toContain("InvalidArgument");
  });
});

const user = (value: string, more: object = {}) => ({ entries: [{ key: "user", value }], ...more });
const perMinute = (requestsPerUnit: number) => ({ limit: { requestsPerUnit, unit: "MINUTE" } });
const limit = async (descriptors: readonly object[], more: object = {}) =>
  (await ask(LIMIT, { domain: "rlns_edge", descriptors, ...more })).json;

describe("the rate limit service", () => {
  test("Envoy rate limit service admits a descriptor without a limit or override", async () => {
    expect(await limit([user("free")])).toEqual({ overallCode: "OK", statuses: [{ code: "OK" }] });
  });

  test("Envoy rate limit service counts the limit of a descriptor, including multiple hits", async () => {
    const descriptor = user("own", perMinute(5));
    const first = await limit([descriptor], { hitsAddend: 3 });
    expect(first).toMatchObject({
      overallCode: "OK",
      statuses: [{ code: "OK", currentLimit: { requestsPerUnit: 5, unit: "MINUTE" }, limitRemaining: 2 }],
    });
    expect(Number.parseFloat(first?.statuses?.[0]?.durationUntilReset ?? "")).toBeGreaterThan(0);
    expect(Number.parseFloat(first?.statuses?.[0]?.durationUntilReset ?? "")).toBeLessThanOrEqual(60);
    // The hits of a descriptor take precedence over those of the request; 0 only checks.
    expect(await limit([{ ...descriptor, hitsAddend: "0" }], { hitsAddend: 3 })).toMatchObject({
      statuses: [{ limitRemaining: 2 }],
    });
    const refused = await limit([{ ...descriptor, hitsAddend: "3" }]);
    expect(refused).toMatchObject({ overallCode: "OVER_LIMIT", statuses: [{ code: "OVER_LIMIT" }] });
    const names = refused?.responseHeadersToAdd?.map(({ key }) => key);
    expect(names).toEqual(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"]);
  });

  test("Envoy rate limit service charges all descriptors of a request atomically", async () => {
    const [narrow, wide] = [user("narrow", perMinute(1)), user("wide", perMinute(10))];
    expect(await limit([wide, narrow])).toMatchObject({ overallCode: "OK" });
    expect(await limit([wide, narrow])).toMatchObject({
      overallCode: "OVER_LIMIT",
      statuses: [{ code: "OK" }, { code: "OVER_LIMIT" }],
    });
    expect(await limit([{ ...wide, hitsAddend: "0" }])).toMatchObject({ statuses: [{ limitRemaining: 9 }] });
    expect(await gate.metrics()).toMatch(/postern_sidecar_rate_limit_requests_total\{code="OVER_LIMIT"\} [1-9]/);
  });

  test("Envoy rate limit service prefers an exact override to a pattern, and a pattern to the descriptor limit", async () => {
    const override = (id: string, identifier: string, max: number) => ({
      ...{ id, identifier, limit: max, durationMs: HOUR, async: false },
    });
    await gate.records.putAny("overridePatterns", "rlns_edge", { patterns: [override("rlor_1", "plan=*|user=*", 7)] });
    await gate.records.putOverride("rlns_edge", override("rlor_2", "plan=gold|user=vip", 70));
    const of = (name: string) => ({
      entries: [
        { key: "plan", value: "gold" },
        { key: "user", value: name },
      ],
      ...perMinute(1),
    });
    expect(await limit([of("vip"), of("other")])).toMatchObject({
      statuses: [
        { currentLimit: { requestsPerUnit: 70, unit: "HOUR" }, limitRemaining: 69 },
        { currentLimit: { requestsPerUnit: 7, unit: "HOUR" }, limitRemaining: 6 },
      ],
    });
  });

  test("Envoy rate limit service counts descriptor values of any length", async () => {
    const long = user("x".repeat(10_000), perMinute(1));
    expect(await limit([long])).toMatchObject({ overallCode: "OK" });
    expect(await limit([long])).toMatchObject({ overallCode: "OVER_LIMIT" });
  });

  test("Envoy rate limit domain resolves to an active namespace of the same workspace", async () => {
    const asked = (domain: string) => ask(LIMIT, { domain, descriptors: [user("x", perMinute(9))] });
    expect((await asked("rlns_named")).json).toMatchObject({ statuses: [{ limitRemaining: 8 }] });
    expect((await asked("named")).json).toMatchObject({ statuses: [{ limitRemaining: 7 }] });
    const named = (name: string, id: string, deleted = false) =>
      gate.records.putAny("namespaceName", name, { id, name, deleted });
    await named("gone", "rlns_gone", true);
    // The state that a relay without name records leaves: the namespace has been renamed.
    await named("formerly", "rlns_edge");
    for (const unknown of ["edge", "formerly", "rlns_gone", "gone", "rlns_of_another_workspace"]) {
      expect((await asked(unknown)).error, unknown).toContain("NotFound");
    }
    await named("edge", "rlns_edge");
    expect((await asked("edge")).json).toMatchObject({ statuses: [{ limitRemaining: 8 }] });
    expect((await asked("rlns_edge")).json).toMatchObject({ statuses: [{ limitRemaining: 7 }] });
  });

  test.each([
    { name: "no domain", request: { descriptors: [user("x")] }, error: "InvalidArgument" },
    { name: "no descriptor", request: { domain: "rlns_edge" }, error: "InvalidArgument" },
    { name: "no entry", request: { domain: "rlns_edge", descriptors: [{}] }, error: "InvalidArgument" },
    {
      name: "a limit without a unit",
      request: { domain: "rlns_edge", descriptors: [user("x", { limit: { requestsPerUnit: 1 } })] },
      error: "InvalidArgument",
    },
    {
      name: "hits to give back",
      request: { domain: "rlns_edge", descriptors: [user("x", { isNegativeHits: true })] },
      error: "Unimplemented",
    },
    {
      name: "more descriptors than there may be",
      request: { domain: "rlns_edge", descriptors: Array.from({ length: 101 }, () => user("x")) },
      error: "InvalidArgument",
    },
  ])("Envoy rate limit service rejects a request with $name", async ({ request, error }) => {
    expect((await ask(LIMIT, request)).error).toContain(error);
  });
});

test("ext-auth gRPC endpoint allows an untrusted address health checks, but no health watch and no other call", async () => {
  const [closed, where] = await openExtAuth("10.0.0.0/8");
  try {
    expect((await run([where, "list"])).error).toContain("is not a trusted gateway");
    // Without reflection, like a gateway.
    const statusOf = (method: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const session = connect(`http://${where}`);
        const stream = session.request({
          ":method": "POST",
          ":path": `/${method}`,
          "content-type": "application/grpc",
          te: "trailers",
        });
        const settle = (headers: { "grpc-status"?: unknown }): void => {
          if (headers["grpc-status"] === undefined) return;
          resolve(headers["grpc-status"]);
          session.close();
        };
        stream.on("response", settle).on("trailers", settle).once("error", reject).resume();
        stream.end(Buffer.alloc(5));
      });
    expect(await statusOf(CHECK)).toBe("7");
    expect(await statusOf(HEALTH)).toBe("0");
    // Watches are long-lived and polled four times a second.
    expect(await statusOf("grpc.health.v1.Health/Watch")).toBe("7");
    expect(await closed.metrics()).toMatch(/ext_auth_rejected_total\{reason="untrusted"\} [1-9]/);
  } finally {
    await closed.close();
  }
});

test("ext-auth gRPC endpoint closes only the connection that sends invalid HTTP/2", async () => {
  await expect(call(Number(address.split(":")[1]), { path: "/" })).rejects.toThrow();
  expect((await ask(HEALTH, {})).json).toEqual({ status: "SERVING" });
});
