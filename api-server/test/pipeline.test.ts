import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { buildTestApp, type TestApp } from "./app.ts";

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
    { name: "a body over 10 MiB before a missing header", rootKey: null, body: tooLarge, status: 413 },
    { name: "a missing header before malformed JSON", rootKey: null, body: "{", status: 401 },
    { name: "malformed JSON before an unknown root key", rootKey: UNKNOWN_ROOT_KEY, body: "{", status: 400 },
    { name: "a wrong field before an unknown root key", rootKey: UNKNOWN_ROOT_KEY, body: { name: 1 }, status: 400 },
    { name: "an unknown root key before the handler", rootKey: UNKNOWN_ROOT_KEY, body: { name: "abc" }, status: 401 },
    { name: "over 256 KiB, an unknown root key before the body", rootKey: UNKNOWN_ROOT_KEY, body: LARGE, status: 401 },
    { name: "over 256 KiB, the body after a good root key", rootKey: undefined, body: LARGE, status: 400 },
    { name: "the body before the permission", rootKey: undefined, body: { name: "ab" }, status: 400 },
  ])("v2 request with $name gets $status", async ({ rootKey, body, status }) => {
    const reply = await t.call("apis.createApi", body, rootKey === undefined ? {} : { rootKey });
    expect(reply.status).toBe(status);
    expect(reply.body.error.status).toBe(status);
  });

  test("body of exactly 10 MiB is accepted", async () => {
    const frame = JSON.stringify({ name: "" }).length;
    const reply = await t.call("apis.createApi", { name: "x".repeat(10_485_760 - frame) });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0]).toMatchObject({ location: "body.name" });
  });

  test("chunked body over 10 MiB gets 413 even with an invalid header", async () => {
    const response = await t.app.inject({
      method: "POST",
      url: "/v2/apis.createApi",
      headers: { "content-type": "application/json", "transfer-encoding": "chunked" },
      payload: Buffer.alloc(10_485_761, "x"),
    });
    expect(response.statusCode).toBe(413);
    expect(response.json().error).toMatchObject({
      type: "https://docs.test/errors/request_body_too_large",
      errors: [],
    });
  });
});

describe("body validation errors", () => {
  const at = async (path: string, body: unknown) => {
    const reply = await t.call(path, body);
    expect(reply.status, JSON.stringify(reply.body)).toBe(400);
    expect(reply.body.error).toMatchObject({ title: "Bad Request", type: "https://docs.test/errors/invalid_input" });
    return (reply.body.error.errors as Array<{ location: string }>).map(({ location }) => location);
  };
  const limit = { name: "requests", limit: 1, duration: 1000, autoApply: true };

  test.each([
    { name: "an empty body", path: "apis.createApi", body: "", locations: ["body"] },
    { name: "an array", path: "apis.createApi", body: [], locations: ["body"] },
    { name: "null", path: "apis.createApi", body: null, locations: ["body"] },
    { name: "malformed JSON", path: "apis.createApi", body: '{"name":', locations: ["body"] },
    { name: "a byte order mark", path: "apis.createApi", body: '\ufeff{"name":"abc"}', locations: ["body"] },
    { name: "a missing member", path: "apis.createApi", body: {}, locations: ["body.name"] },
    {
      name: "each unknown member",
      path: "apis.createApi",
      body: { name: "abc", a: 1, b: 2 },
      locations: ["body.a", "body.b"],
    },
    { name: "a null that is not allowed", path: "apis.createApi", body: { name: null }, locations: ["body.name"] },
    {
      name: "__proto__",
      path: "apis.createApi",
      body: '{"name":"abc","__proto__":{"a":1}}',
      locations: ["body.__proto__"],
    },
    {
      name: "an item deep inside",
      path: "keys.createKey",
      body: { apiId: "api_1234", ratelimits: [limit, limit, { ...limit, limit: 0 }] },
      locations: ["body.ratelimits[2].limit"],
    },
    {
      name: "a missing member deep inside",
      path: "keys.createKey",
      body: { apiId: "api_1234", ratelimits: [{ name: "requests", limit: 1 }] },
      locations: ["body.ratelimits[0].duration"],
    },
    {
      name: "a text for an integer",
      path: "keys.createKey",
      body: { apiId: "api_1234", byteLength: "16" },
      locations: ["body.byteLength"],
    },
    {
      name: "an integer over 2^53-1",
      path: "keys.createKey",
      body: '{"apiId":"api_1234","credits":{"remaining":9007199254740992}}',
      locations: ["body.credits.remaining"],
    },
    { name: "U+0000", path: "apis.createApi", body: { name: "ab\0cd" }, locations: ["body.name"] },
    { name: "half a surrogate pair", path: "apis.createApi", body: '{"name":"ab\\ud800cd"}', locations: ["body.name"] },
    {
      name: "U+0000 within meta",
      path: "keys.createKey",
      body: { apiId: "api_1234", meta: { a: [{ b: "x\0" }] } },
      locations: ["body.meta.a[0].b"],
    },
    {
      name: "U+0000 in a name within meta",
      path: "keys.createKey",
      body: { apiId: "api_1234", meta: { "a\0": 1 } },
      locations: ["body.meta"],
    },
    ...["1e999", "-1E+309", "1e0000400", "9".repeat(310)].map((number) => ({
      name: `a number beyond a double within meta, ${number.slice(0, 10)}`,
      path: "keys.createKey",
      body: `{"apiId":"api_1234","meta":{"a":[0,${number}]}}`,
      locations: ["body.meta.a[1]"],
    })),
    {
      name: "101 members of meta",
      path: "keys.createKey",
      body: { apiId: "api_1234", meta: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`m${i}`, i])) },
      locations: ["body.meta"],
    },
  ])("request body validation reports $name", async ({ path, body, locations }) => {
    expect(await at(path, body)).toEqual(locations);
  });

  test("body validation accepts 16.0 as an integer", async () => {
    expect((await t.call("keys.createKey", `{"apiId":"${apiId}","byteLength":16.0}`)).status).toBe(200);
  });

  test("body nested too deeply to be stored is rejected", async () => {
    const reply = await t.call(
      "keys.createKey",
      `{"apiId":"${apiId}","meta":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`,
    );
    expect(reply.status).toBe(400);
  });

  test("body validation reports at most 50 errors", async () => {
    const unknown = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`unknown${i}`, i]));
    expect(await at("apis.createApi", { name: "abc", ...unknown })).toHaveLength(50);
  });

  test("body validation messages never repeat a value", async () => {
    const reply = await t.call("keys.verifyKey", { key: `secret${"x".repeat(600)}` });
    expect(reply.status).toBe(400);
    expect(JSON.stringify(reply.body)).not.toContain("secret");
  });

  test("body that is not UTF-8 is rejected", async () => {
    const response = await t.app.inject({
      method: "POST",
      url: "/v2/apis.createApi",
      headers: { "content-type": "application/json", authorization: `Bearer ${t.workspace.rootKey}` },
      payload: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    });
    expect(response.json().error).toMatchObject({
      status: 400,
      type: "https://docs.test/errors/request_body_unreadable",
    });
  });

  test.each([
    { contentType: "text/plain", ok: false },
    { contentType: "application/jsonx", ok: false },
    { contentType: "application/x-www-form-urlencoded", ok: false },
    { contentType: "not a type", ok: false },
    { contentType: "application/json; charset=utf-8", ok: true },
    { contentType: "Application/JSON", ok: true },
  ])("request content type $contentType is accepted: $ok", async ({ contentType, ok }) => {
    const reply = await t.call("apis.createApi", { name: "abc" }, { headers: { "content-type": contentType } });
    expect(reply.status).toBe(ok ? 200 : 400);
    if (!ok) expect(reply.body.error.errors[0].location).toBe("header.Content-Type");
  });

  test.each([
    { contentEncoding: "gzip", ok: false },
    { contentEncoding: "identity, br", ok: false },
    { contentEncoding: "identity", ok: true },
  ])("request content encoding $contentEncoding is accepted: $ok", async ({ contentEncoding, ok }) => {
    const reply = await t.call("apis.createApi", { name: "abc" }, { headers: { "content-encoding": contentEncoding } });
    expect(reply.status).toBe(ok ? 200 : 400);
    if (!ok) expect(reply.body.error.errors[0].location).toBe("header.Content-Encoding");
  });

  test("missing Authorization header is reported before an unsupported content type", async () => {
    const reply = await t.call("apis.createApi", {}, { rootKey: null, headers: { "content-type": "not a type" } });
    expect(reply.status).toBe(401);
  });
});

describe("error bodies", () => {
  test("v2 error body has exactly the documented members", async () => {
    const { body, headers } = await t.call("apis.getApi", { apiId: "api_missing0" });
    expect(body).toEqual({
      meta: { requestId: expect.stringMatching(/^req_[a-zA-Z0-9]{16}$/) },
      error: {
        title: "Not Found",
        detail: "There is no API api_missing0 in the workspace.",
        status: 404,
        type: "https://docs.test/errors/api_not_found",
      },
    });
    expect(headers["content-type"]).toMatch(/^application\/json/);
  });

  test.each([
    { accept: "application/problem+json", type: "application/problem+json" },
    { accept: "text/html, application/*;q=0.8", type: "application/problem+json" },
    { accept: "*/*", type: "application/json" },
    { accept: "application/json", type: "application/json" },
  ])("v2 error for `Accept: $accept` has content type $type", async ({ accept, type }) => {
    const reply = await t.call("apis.getApi", { apiId: "api_missing0" }, { headers: { accept } });
    expect(reply.headers["content-type"]).toMatch(new RegExp(`^${type.replace("+", "\\+")}(;|$)`));
    expect(reply.body.error.status).toBe(404);
  });

  test("unknown v2 path gets 404 and a wrong method gets 405 without a root key", async () => {
    const missing = await t.app.inject({ method: "POST", url: "/v2/keys.nope", payload: {} });
    expect([missing.statusCode, missing.json().error.type]).toEqual([404, "https://docs.test/errors/not_found"]);
    const wrong = await t.app.inject({ method: "GET", url: "/v2/keys.getKey?x=1" });
    expect([wrong.statusCode, wrong.json().error.type]).toEqual([405, "https://docs.test/errors/method_not_allowed"]);
    expect(wrong.headers.allow).toBe("POST");
    const query = await t.app.inject({ method: "QUERY", url: "/v2/liveness" });
    expect([query.statusCode, query.headers.allow]).toEqual([405, "GET, HEAD"]);
    const unreadable = await t.app.inject({ method: "GET", url: "/v2/%zz" });
    expect([unreadable.statusCode, unreadable.json().error.type]).toEqual([404, "https://docs.test/errors/not_found"]);
  });

  test("request ids are unique and ignore client headers", async () => {
    const one = await t.call("apis.getApi", { apiId }, { headers: { "x-request-id": "mine", "request-id": "mine" } });
    const other = await t.call("apis.getApi", { apiId });
    expect(one.body.meta.requestId).toMatch(/^req_/);
    expect(one.body.meta.requestId).not.toBe(other.body.meta.requestId);
  });

  test("invalid HTTP gets a v2 error response", async () => {
    const address = new URL(await t.app.listen({ port: 0, host: "127.0.0.1" }));
    const socket = connect(Number(address.port), "127.0.0.1");
    socket.end("this is no request\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({ error: { status: 400, errors: [] } });
  });
});

test("request whose body does not arrive in time gets 408, also on reused connections", async () => {
  const slow = await buildTestApp({ requestTimeoutMs: 300 });
  const address = new URL(await slow.app.listen({ port: 0, host: "127.0.0.1" }));
  const socket = connect(Number(address.port), "127.0.0.1");
  socket.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(socket, "data");
  socket.write(
    "POST /v2/apis.getApi HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
  );
  let text = "";
  for await (const chunk of socket) text += chunk;
  expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n"))).error).toMatchObject({ status: 408, errors: [] });
  await slow.close();
});

describe("headers of managed objects", () => {
  const part = (length: number) => "a".repeat(length);
  test.each([
    { name: "four parts", value: "prod/ApiKeyPolicy/shop/orders", ok: true },
    { name: "parts of 253", value: [part(253), part(253), part(253), part(253)].join("/"), ok: true },
    { name: "a part of 254", value: `${part(254)}/b/c/d`, ok: false },
    { name: "three parts", value: "a/b/c", ok: false },
    { name: "five parts", value: "a/b/c/d/e", ok: false },
    { name: "an empty part", value: "a//c/d", ok: false },
    { name: "another character", value: "a/b c/d/e", ok: false },
  ])("manager header is accepted or rejected by its form: $name", async ({ value, ok }) => {
    const reply = await t.call("apis.createApi", { name: "managed" }, { headers: { "Postern-Manager": value } });
    expect(reply.status).toBe(ok ? 200 : 400);
    if (!ok) expect(reply.body.error.errors[0].location).toBe("header.Postern-Manager");
  });

  test("adopt and release headers accept only true or false", async () => {
    const reply = await t.call("apis.updateApi", { apiId }, { headers: { "Postern-Adopt": "yes" } });
    expect(reply.body.error.errors[0].location).toBe("header.Postern-Adopt");
  });

  test("read, verify and limit procedures ignore the manager headers", async () => {
    const headers = { "Postern-Manager": "nobody", "Postern-Adopt": "yes", "Postern-Release": "maybe" };
    expect((await t.call("apis.getApi", { apiId }, { headers })).status).toBe(200);
    expect((await t.call("keys.verifyKey", { key: "unknown" }, { headers })).status).toBe(200);
    const limited = { namespace: "heads", identifier: "a", limit: 1, duration: 3_600_000 };
    expect((await t.call("ratelimit.limit", limited, { headers })).status).toBe(200);
  });
});

describe("the workspace's quota", () => {
  const MINUTE_MS = 60_000;
  const setQuota = async (workspaceId: string, quota: number | null) => {
    await t.deps.db.query("update workspaces set quota_per_minute = $2 where id = $1", [workspaceId, quota]);
    t.deps.projection.drop([{ workspaceId, kind: "workspace", id: workspaceId }]);
  };

  test("workspace quota counts all root keys and rejects excess requests", async () => {
    const workspace = await t.makeWorkspace();
    const second = await t.rootKey(["api.*.read_api"], { workspaceId: workspace.id });
    await setQuota(workspace.id, 2);
    // Starts a new minute, because a minute boundary between two calls would admit one more request.
    t.advance(MINUTE_MS - (t.deps.nowMs() % MINUTE_MS));
    const first = await t.call("apis.getApi", { apiId: "api_missing0" }, { rootKey: workspace.rootKey });
    expect(first.status).toBe(404);
    expect(first.headers).toMatchObject({ "ratelimit-limit": "2", "ratelimit-remaining": "1" });
    expect(Number(first.headers["ratelimit-reset"])).toBeGreaterThanOrEqual(0);
    await t.call("apis.getApi", { apiId: "api_missing0" }, { rootKey: second });
    const third = await t.call("apis.getApi", { apiId: "api_missing0" }, { rootKey: workspace.rootKey });
    expect(third.status).toBe(429);
    expect(third.body.error).toMatchObject({
      title: "Too Many Requests",
      type: "https://docs.test/errors/workspace_rate_limited",
    });
    expect(Number(third.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    await setQuota(workspace.id, null);
    const free = await t.call("apis.getApi", { apiId: "api_missing0" }, { rootKey: workspace.rootKey });
    expect(free.status).toBe(404);
    expect(free.headers["ratelimit-limit"]).toBeUndefined();
  });

  test("workspace quota of 0 rejects every request after body validation", async () => {
    const workspace = await t.makeWorkspace();
    await setQuota(workspace.id, 0);
    expect((await t.call("apis.getApi", { apiId }, { rootKey: workspace.rootKey })).status).toBe(429);
    expect((await t.call("apis.getApi", {}, { rootKey: workspace.rootKey })).status).toBe(400);
  });
});

test("response has the Postern-Propagation header only while changes of the workspace are delayed", async () => {
  const delayed = new Set<string>();
  const slow = await buildTestApp({ deps: () => ({ propagationDelayed: (workspaceId) => delayed.has(workspaceId) }) });
  try {
    const other = await slow.makeWorkspace();
    delayed.add(slow.workspace.id);
    const created = await slow.call("apis.createApi", { name: "abc" });
    expect(created.headers["postern-propagation"]).toBe("delayed");
    const read = await slow.call("apis.getApi", { apiId: created.body.data.apiId });
    expect(read.headers["postern-propagation"]).toBeUndefined();
    const others = await slow.call("apis.createApi", { name: "abc" }, { rootKey: other.rootKey });
    expect([others.status, others.headers["postern-propagation"]]).toEqual([200, undefined]);
  } finally {
    await slow.close();
  }
});

describe("a handler that does not end", () => {
  /** Runs a handler that waits for a lock held by the test. */
  const withStuckHandler = async (work: (stuck: TestApp, apiId: string) => Promise<void>) => {
    const stuck = await buildTestApp({ requestTimeoutMs: 300 });
    const blocker = await stuck.deps.db.connect();
    try {
      const { apiId } = await stuck.data("apis.createApi", { name: "abc" });
      await blocker.query("begin");
      await blocker.query("select from apis where id = $1 for update", [apiId]);
      await work(stuck, apiId);
    } finally {
      await blocker.query("rollback");
      blocker.release();
      await stuck.close();
    }
  };

  test("request with a hanging handler gets 408 after the request timeout", () =>
    withStuckHandler(async (stuck, id) => {
      const reply = await stuck.call("apis.updateApi", { apiId: id, name: "abcd" });
      expect(reply.status).toBe(408);
      expect(reply.body.error).toMatchObject({ title: "Request Timeout", errors: [] });
    }));

  test("request with a hanging handler is logged as 499 if the client disconnects", () =>
    withStuckHandler(async (stuck, id) => {
      const address = new URL(await stuck.app.listen({ port: 0, host: "127.0.0.1" }));
      const body = JSON.stringify({ apiId: id, name: "abcd" });
      const socket = connect(Number(address.port), "127.0.0.1");
      await once(socket, "connect");
      socket.write(
        `POST /v2/apis.updateApi HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer ${stuck.workspace.rootKey}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await waitFor(
        "the handler to wait for the lock",
        async () => {
          const { rowCount } = await stuck.deps.db.query(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
          );
          return rowCount === 1;
        },
        { everyMs: 5 },
      );
      // Resets the connection, because a half-closed client may still expect a response.
      socket.resetAndDestroy();
      const line = await waitFor("the log", () => stuck.logs.find((one) => one.includes("client_closed_request")));
      expect(JSON.parse(line)).toMatchObject({ status: 499, url: "/v2/apis.updateApi" });
    }));
});

test("request gets 500 service_unavailable without details if the database is unavailable", async () => {
  const lost = await buildTestApp();
  await lost.data("apis.createApi", { name: "abc" });
  await lost.dropDatabase();
  const reply = await lost.call("apis.getApi", { apiId: "api_12345" });
  expect(reply.body.error).toMatchObject({ status: 500, type: "https://docs.test/errors/service_unavailable" });
  expect(reply.body.error.detail).toBe("The database cannot be reached.");
  expect(lost.logs.join()).toContain("service_unavailable");
  await lost.close();
});

test("root keys, keys and their hashes are never logged", async () => {
  const { key } = await t.data("keys.createKey", { apiId });
  await t.call("keys.verifyKey", { key: `${key}x`, tags: 5 });
  const logs = t.logs.join("\n");
  expect(logs).not.toContain(key);
  expect(logs).not.toContain(t.workspace.rootKey);
});
