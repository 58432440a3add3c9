import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { buildApp } from "../app.ts";
import { createV1, type V1Settings } from "../plugins/v1/index.ts";
import { v1Procedures } from "../v1/index.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type TestApp } from "./app.ts";
import { requestOf } from "./request.ts";

/* Headers of every v1 response, the switch that disables v1, and the audit of root keys that still use v1 (api-v1.md section 2). */

const DEPRECATED_SINCE = Date.UTC(2026, 0, 1) / 1000;

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

describe("each response", () => {
  test.each([
    { name: "a success", path: "v1/apis.createApi", body: { name: "orders" }, status: 200 },
    { name: "one that is JSON already", path: "v1/liveness", body: {}, status: 200 },
    { name: "a missing header", path: "v1/apis.createApi", body: { name: "orders" }, rootKey: null, status: 401 },
    { name: "a body that does not fit", path: "v1/apis.createApi", body: {}, status: 400 },
    { name: "a body that is too large", path: "v1/apis.createApi", body: "x".repeat(10_485_761), status: 413 },
    { name: "no such object", path: "v1/apis.getApi", body: { apiId: "api_none" }, status: 404 },
  ])(
    "v1 response for $name has a Deprecation header, a successor link and a request id",
    async ({ path, body, status, ...options }) => {
      const reply = await t.call(path, body, options);
      expect(reply.status).toBe(status);
      expect(reply.headers).toMatchObject({
        deprecation: `@${DEPRECATED_SINCE}`,
        link: `</v2/${path.replace("v1/", "")}>; rel="successor-version"`,
        "access-control-allow-origin": "*",
        "x-request-id": expect.stringMatching(/^req_/),
      });
      expect(reply.headers.sunset).toBeUndefined();
      if (status !== 200) expect(reply.headers["x-request-id"]).toBe(reply.body.error.requestId);
    },
  );

  test("v1 response for an unknown path or wrong method has no successor link", async () => {
    for (const url of ["/v1/keys.explode", "/v1/%"]) {
      const { headers } = await t.app.inject({ url });
      expect(headers).toMatchObject({ deprecation: `@${DEPRECATED_SINCE}`, "access-control-allow-origin": "*" });
      expect(headers["x-request-id"]).toMatch(/^req_/);
      expect(headers.link).toBeUndefined();
    }
  });

  test("v2 responses have no deprecation headers", async () => {
    const { headers } = await t.call("apis.createApi", { name: "orders" });
    for (const name of ["deprecation", "link", "access-control-allow-origin", "x-request-id"]) {
      expect(headers[name]).toBeUndefined();
    }
  });
});

test("every v1 successor is a v2 procedure", () => {
  const paths = [...procedures.map(({ path }) => path as string), "liveness"];
  const unknown = v1Procedures.filter(({ successor }) => !paths.includes(successor));
  expect(unknown.map(({ path, successor }) => `${path}: ${successor}`)).toEqual([]);
});

test("v1 allows browser calls from any origin", async () => {
  const preflight = await t.app.inject({
    method: "OPTIONS",
    url: "/v1/apis.createApi",
    headers: {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    },
  });
  expect(preflight.statusCode).toBe(204);
  expect(preflight.payload).toBe("");
  expect(preflight.headers).toMatchObject({
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": expect.stringContaining("Authorization"),
  });
  expect((await t.app.inject({ method: "OPTIONS", url: "/v2/apis.createApi" })).statusCode).toBe(405);
});

test("wrong method on a path with a parameter gets 405 with the allowed methods", async () => {
  const wrong = await t.app.inject({ method: "POST", url: "/errors/not_found" });
  expect([wrong.statusCode, wrong.headers.allow]).toEqual([405, "GET, HEAD"]);
});

describe("with other settings", () => {
  const serving = async (v1: V1Settings, work: (other: TestApp) => Promise<void>) => {
    const other = await buildTestApp({ v1 });
    try {
      await work(other);
    } finally {
      await other.close();
    }
  };

  test("v1 responses include the configured Sunset date and v2 URL", async () => {
    const v1 = { isServed: true, sunsetMs: Date.UTC(2027, 1, 3), apiUrl: "https://api.example/postern" };
    await serving(v1, async (other) => {
      for (const reply of [await other.call("v1/liveness", {}), await other.call("v1/apis.createApi", {})]) {
        expect(reply.headers.sunset).toBe("Wed, 03 Feb 2027 00:00:00 GMT");
        expect(reply.headers.link).toMatch(/^<https:\/\/api\.example\/postern\/v2\//);
      }
      expect((await other.app.inject({ url: "/v1/nothing" })).headers.sunset).toBe("Wed, 03 Feb 2027 00:00:00 GMT");
    });
  });

  test("disabled v1 responds 410 GONE except for the document and preflights", async () => {
    await serving({ isServed: false, apiUrl: "https://api.example" }, async (other) => {
      for (const { path, successor } of v1Procedures) {
        const { method, url } = requestOf(`v1/${path}`, { apiId: "api_1" });
        const response = await other.app.inject({ method, url });
        expect([path, response.statusCode]).toEqual([path, 410]);
        expect(response.json().error).toMatchObject({
          code: "GONE",
          message: `Version 1 of the API is disabled. Call https://api.example/v2/${successor} instead.`,
        });
        expect(response.headers.link).toBe(`<https://api.example/v2/${successor}>; rel="successor-version"`);
      }
      expect((await other.app.inject({ url: "/v1/nothing" })).statusCode).toBe(404);
      expect((await other.app.inject({ method: "OPTIONS", url: "/v1/keys.createKey" })).statusCode).toBe(204);
      expect((await other.app.inject({ url: "/v1/openapi.json" })).statusCode).toBe(200);
      expect((await other.call("apis.createApi", { name: "orders" })).status).toBe(200);
      expect((await other.app.inject({ url: "/metrics" })).payload).toContain("postern_api_v1_enabled 0");
    });
  });
});

test("metrics count v1 calls by procedure", async () => {
  await t.call("v1/apis.getApi", { apiId: "api_none" });
  const { payload } = await t.app.inject({ url: "/metrics" });
  expect(payload).toMatch(/postern_api_requests_total\{procedure="\/v1\/apis.getApi",status="404"\} [1-9]/);
  expect(payload).toContain("postern_api_v1_enabled 1");
});

describe("which root keys call v1", () => {
  const uses = async (workspaceId: string) => {
    const { rows } = await t.deps.db.query(
      "select actor ->> 'id' as root_key, time, request_id from audit_log where workspace_id = $1 and event = 'api.v1_used'",
      [workspaceId],
    );
    return rows;
  };
  const untilUses = (workspaceId: string, count: number) =>
    waitFor(`${count} rows`, async () => (await uses(workspaceId)).length === count);

  test("use of v1 is recorded in the audit log once per root key and UTC date", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    const second = await t.rootKey([], { workspaceId: id });
    const call = (key: string) => t.call("v1/apis.getApi", { apiId: "api_none" }, { rootKey: key });
    for (let i = 0; i < 3; i++) await call(rootKey);
    await untilUses(id, 1);
    // A call that its handler rejects counts as a use of v1.
    expect((await call(second)).status).toBe(403);
    await untilUses(id, 2);
    t.advance(86_400_000);
    await call(rootKey);
    await untilUses(id, 3);
    await call(rootKey);
    const rows = await uses(id);
    expect(new Set(rows.map(({ root_key }) => root_key)).size).toBe(2);
    expect(rows).toHaveLength(3);
  });

  test("audit log entries about the use of v1 exclude v2 calls and calls without a valid root key", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    await t.call("apis.createApi", { name: "orders" }, { rootKey });
    await t.call("v1/liveness", {}, { rootKey });
    await t.call("v1/apis.getApi", { apiId: "api_none" }, { rootKey: `${rootKey}x` });
    // The audit entry of this call is written last, so earlier entries would exist by then.
    const other = await t.makeWorkspace();
    await t.call("v1/apis.getApi", { apiId: "api_none" }, { rootKey: other.rootKey });
    await untilUses(other.id, 1);
    expect(await uses(id)).toEqual([]);
  });

  test("use of v1 is recorded in the audit log only once across two api-servers", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    const second = await buildApp(t.deps, { oldApi: createV1(t.deps, { isServed: true }) });
    const call = { url: "/v1/apis.getApi?apiId=api_none", headers: { authorization: `Bearer ${rootKey}` } };
    await Promise.all([t.app.inject(call), second.inject(call)]);
    await second.close();
    await untilUses(id, 1);
    expect(await uses(id)).toHaveLength(1);
  });
});
