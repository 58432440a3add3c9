import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERROR_KINDS } from "../../core/errors.ts";
import { DEGRADATIONS, HEALTHY, type Health } from "../health/health.ts";
import { V1_CODES } from "../plugins/v1/errors.ts";
import { procedures } from "../v2/index.ts";
import { buildTestApp, type TestApp } from "./app.ts";

let t: TestApp;
let health: Health = HEALTHY;
beforeAll(async () => {
  t = await buildTestApp({ health: () => health });
});
afterAll(() => t.close());

const get = (url: string) => t.app.inject({ method: "GET", url });

describe("health", () => {
  test("/v2/liveness needs no root key", async () => {
    const response = await get("/v2/liveness");
    expect(response.json()).toEqual({ data: { message: "OK" }, meta: { requestId: expect.stringMatching(/^req_/) } });
  });

  test("/readyz reports readiness, with problems if `verbose`, and /livez is always ok", async () => {
    expect((await get("/readyz")).json()).toEqual({ status: "ready" });
    expect((await get("/readyz?verbose")).json()).toEqual({ status: "ready", degradations: [] });
    health = { ready: true, degradations: ["redis_unavailable"] };
    const degraded = await get("/readyz?verbose");
    expect(degraded.statusCode).toBe(200);
    expect(degraded.json().degradations).toEqual([
      { reason: "redis_unavailable", meaning: DEGRADATIONS.redis_unavailable },
    ]);
    health = { ready: false, degradations: ["postgres_unavailable", "propagation_delayed"] };
    const response = await get("/readyz");
    expect(response.statusCode).toBe(503);
    expect(response.json()).toEqual({ status: "not ready" });
    expect((await get("/livez")).statusCode).toBe(200);
    health = HEALTHY;
  });

  test("/metrics counts requests by procedure and status", async () => {
    await t.call("apis.getApi", { apiId: "api_missing0" });
    const text = (await get("/metrics")).payload;
    expect(text).toContain('postern_api_requests_total{procedure="/v2/apis.getApi",status="404"} 1');
    expect(text).toContain('postern_api_request_duration_seconds_count{procedure="/v2/apis.getApi"} 1');
    expect(text).toContain('postern_api_request_duration_seconds_bucket{procedure="/v2/apis.getApi",le="+Inf"} 1');
  });
});

describe("error pages", () => {
  test.each(Object.keys(ERROR_KINDS))("error kind %s has a documentation page", async (kind) => {
    const response = await get(`/errors/${kind}`);
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toContain("text/html");
    expect(response.payload).toContain(`<code>${kind}</code>`);
    expect(response.payload).not.toMatch(/(?:src|href)="https?:/);
  });

  test("error index links to every error page and to no other page", async () => {
    const { payload } = await get("/errors");
    const linked = [...payload.matchAll(/href="errors\/([^"]+)"/g)].map(([, kind]) => kind);
    expect(linked).toEqual(Object.keys(ERROR_KINDS));
    expect((await get("/errors/nope")).statusCode).toBe(404);
  });
});

describe("the pages of v1's error.docs", () => {
  test.each(Object.keys(V1_CODES))("v1 error code %s has a documentation page", async (code) => {
    const page = await get(`/api-reference/errors/code/${code}`);
    expect(page.headers["content-type"]).toContain("text/html");
    expect(page.payload).toContain(code);
  });

  test("request for the page of an unknown v1 error code gets 404", async () => {
    expect((await get("/api-reference/errors/code/TEAPOT")).statusCode).toBe(404);
  });
});

test.each([
  { url: "/openapi.json", file: "openapi.json" },
  { url: "/v1/openapi.json", file: "openapi-v1.json" },
])("$url has the digest that is recorded in the repository", async ({ url, file }) => {
  const digests = readFileSync(resolve(import.meta.dirname, "../../docs/reference/openapi.sha256"), "utf8");
  const text = `${JSON.stringify((await get(url)).json(), null, 2)}\n`;
  expect(digests).toContain(`${createHash("sha256").update(text).digest("hex")}  ${file}\n`);
});

test("/docs serves a page for browsing /openapi.json", async () => {
  const page = await get("/docs");
  expect(page.headers["content-type"]).toContain("text/html");
  expect((await get("/docs/start.js")).payload).toContain("openapi.json");
});

describe("/openapi.json", () => {
  interface Operation {
    operationId: string;
    responses: Record<string, { content: Record<string, { schema: unknown }> }>;
    requestBody: {
      content: { "application/json": { schema: { properties: Record<string, { description?: string }> } } };
    };
  }
  let document: {
    openapi: string;
    paths: Record<string, { post?: Operation & Record<string, unknown>; get?: Operation }>;
  };
  beforeAll(async () => {
    document = (await get("/openapi.json")).json();
  });

  test("/openapi.json is an OpenAPI 3.1 document of every procedure and of liveness", () => {
    expect(document.openapi).toBe("3.1.0");
    const expected = [...procedures.map(({ path }) => `/v2/${path}`), "/v2/liveness"].sort();
    expect(Object.keys(document.paths).sort()).toEqual(expected);
  });

  test.each(procedures.map((procedure) => ({ path: procedure.path, procedure })))(
    "/openapi.json lists all errors of $path",
    ({ procedure }) => {
      const operation = document.paths[`/v2/${procedure.path}`]?.post;
      const statuses = new Set(Object.keys(operation?.responses ?? {}).map(Number));
      for (const status of [200, 400, 401, 403, 408, 413, 429, 500]) expect(statuses).toContain(status);
      for (const kind of procedure.errors) expect(statuses).toContain(ERROR_KINDS[kind].status);
      expect(operation?.["x-postern-addition"]).toBe(procedure.addition);
    },
  );

  test.each(procedures.map(({ path }) => path))("/openapi.json describes every request field of %s", (path) => {
    const schema = document.paths[`/v2/${path}`]?.post?.requestBody.content["application/json"].schema;
    const undescribed = Object.entries(schema?.properties ?? {}).filter(([, field]) => field.description === undefined);
    expect(undescribed.map(([name]) => name)).toEqual([]);
  });
});
