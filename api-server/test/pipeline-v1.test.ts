import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "./app.ts";

/* Steps before and after each v1 handler (api-v1.md sections 2 to 4). */

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const UNKNOWN_ROOT_KEY = "root_doesnotexist";
const LARGE = { name: "x".repeat(300_000) };

describe("the first failing step responds", () => {
  const tooLarge = JSON.stringify({ name: "x".repeat(10_485_760) });
  test.each([
    {
      name: "a body over 10 MiB before a missing header",
      rootKey: null,
      body: tooLarge,
      status: 413,
      code: "BAD_REQUEST",
    },
    { name: "malformed JSON before a missing header", rootKey: null, body: "{", status: 400, code: "BAD_REQUEST" },
    {
      name: "a wrong field before a missing header",
      rootKey: null,
      body: { name: 1 },
      status: 400,
      code: "BAD_REQUEST",
    },
    { name: "a missing header", rootKey: null, body: { name: "abc" }, status: 401, code: "UNAUTHORIZED" },
    {
      name: "an unknown root key",
      rootKey: UNKNOWN_ROOT_KEY,
      body: { name: "abc" },
      status: 401,
      code: "UNAUTHORIZED",
    },
    {
      name: "over 256 KiB, the root key before the body",
      rootKey: UNKNOWN_ROOT_KEY,
      body: LARGE,
      status: 401,
      code: "UNAUTHORIZED",
    },
    {
      name: "over 256 KiB, the body after a good root key",
      rootKey: undefined,
      body: LARGE,
      status: 400,
      code: "BAD_REQUEST",
    },
  ])("v1 request with $name gets $status $code", async ({ rootKey, body, status, code }) => {
    const reply = await t.call("v1/apis.createApi", body, rootKey === undefined ? {} : { rootKey });
    expect(reply.status).toBe(status);
    expect(Object.keys(reply.body)).toEqual(["error"]);
    expect(reply.body.error).toEqual({
      code,
      docs: `https://docs.test/api-reference/errors/code/${code}`,
      message: expect.any(String),
      requestId: expect.stringMatching(/^req_/),
    });
  });

  test("v1 request with a missing permission gets 403 INSUFFICIENT_PERMISSIONS and names it", async () => {
    const rootKey = await t.rootKey(["api.*.read_api"]);
    const reply = await t.call("v1/apis.createApi", { name: "abc" }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error).toMatchObject({
      code: "INSUFFICIENT_PERMISSIONS",
      message: "The root key lacks the permission api.*.create_api.",
    });
  });

  test("v1 request to a disabled workspace gets 403 FORBIDDEN", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    await t.deps.db.query("update workspaces set enabled = false where id = $1", [id]);
    const reply = await t.call("v1/apis.createApi", { name: "abc" }, { rootKey });
    expect([reply.status, reply.body.error.code]).toEqual([403, "FORBIDDEN"]);
  });

  test("v1 request with a disabled root key gets 401 UNAUTHORIZED", async () => {
    const rootKey = await t.rootKey(["api.*.create_api"], { name: "disabled" });
    await t.deps.db.query("update root_keys set enabled = false where name = 'disabled'");
    const reply = await t.call("v1/apis.createApi", { name: "abc" }, { rootKey });
    expect([reply.status, reply.body.error.code]).toEqual([401, "UNAUTHORIZED"]);
  });
});

describe("a body", () => {
  const messageOf = async (body: unknown, headers: Record<string, string> = {}): Promise<string> => {
    const reply = await t.call("v1/apis.createApi", body, { headers });
    expect(reply.status).toBe(400);
    return reply.body.error.message;
  };

  test.each([
    { name: "a wrong type", body: { name: 1 }, message: "name: expected a string, got a number" },
    { name: "a missing field", body: {}, message: "name: is required" },
    {
      name: "an array",
      body: [],
      message: "The body of /v1/apis.createApi does not match its schema: expected an object, got an array",
    },
    { name: "no JSON", body: "{", message: "The body is not valid JSON: expected valid JSON" },
    {
      name: "U+0000",
      body: { name: "a\0b" },
      message: "name: expected text without U+0000 and without unpaired surrogates",
    },
  ])("v1 request body with $name is rejected with the message: $message", async ({ body, message }) => {
    expect(await messageOf(body)).toBe(message);
  });

  test("v1 body without a JSON content type is read as empty", async () => {
    expect(await messageOf({ name: "payments" }, { "content-type": "text/plain" })).toBe("name: is required");
  });

  test("v1 body can have unknown fields", async () => {
    expect((await t.call("v1/apis.createApi", { name: "payments", color: "red" })).status).toBe(200);
  });
});

describe("a query", () => {
  const get = (query: string) =>
    t.app.inject({ url: `/v1/apis.getApi${query}`, headers: { authorization: `Bearer ${t.workspace.rootKey}` } });

  test("v1 query string can have unknown parameters", async () => {
    expect((await get(`?apiId=${apiId}&color=red&color=blue`)).statusCode).toBe(200);
  });

  test.each([
    { query: "", message: "apiId: is required" },
    { query: "?apiId=a&apiId=b", message: "apiId: expected a string, got an array" },
    { query: "?apiId=a%00b", message: "apiId: expected text without U+0000 and without unpaired surrogates" },
  ])("v1 query string '$query' is rejected with the message: $message", async ({ query, message }) => {
    const response = await get(query);
    expect(response.statusCode).toBe(400);
    expect(response.json().error.message).toBe(message);
  });
});

describe("a procedure without a root key", () => {
  test("v1 keys.verifyKey ignores an Authorization header", async () => {
    for (const rootKey of [null, UNKNOWN_ROOT_KEY, t.workspace.rootKey]) {
      const reply = await t.call("v1/liveness", {}, { rootKey });
      expect(reply.status).toBe(200);
      expect(reply.body).toMatchObject({ status: "ok", services: { metrics: expect.any(String) } });
    }
  });
});

test("unknown v1 path gets 404 NOT_FOUND, and a wrong method 405 METHOD_NOT_ALLOWED", async () => {
  const unknown = await t.app.inject({ url: "/v1/keys.explode" });
  expect([unknown.statusCode, unknown.json().error.code]).toEqual([404, "NOT_FOUND"]);
  for (const method of ["POST", "HEAD", "DELETE"] as const) {
    const wrong = await t.app.inject({ method, url: "/v1/apis.getApi" });
    expect([wrong.statusCode, wrong.headers.allow]).toEqual([405, "GET"]);
    if (method !== "HEAD") expect(wrong.json().error.code).toBe("METHOD_NOT_ALLOWED");
  }
});
