import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { waitFor } from "../../test/harness/wait.ts";
import { ApiUnavailable, createStoreApi } from "./client.ts";

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  if (server !== undefined) await once(server, "close");
  server = undefined;
});

interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

const done: Reply = { status: 200, body: { data: { roleId: "role_1" }, meta: { requestId: "req_1" } } };
const failure = (status: number, kind: string, detail = "It is so."): Reply => ({
  status,
  body: {
    meta: { requestId: "req_1" },
    error: { title: "", detail, status, type: `https://docs.test/errors/${kind}` },
  },
});

/** Starts a server that sends these responses in order, repeats the last one and records its requests. */
async function serve(replies: Reply[], options: { timeoutMs?: number; signal?: () => AbortSignal } = {}) {
  const requests: Array<{ path: string | undefined; headers: IncomingMessage["headers"]; body: unknown }> = [];
  const listening = createServer(async (request, response) => {
    requests.push({ path: request.url, headers: request.headers, body: await json(request) });
    const reply = replies[Math.min(requests.length, replies.length) - 1];
    if (reply === undefined) return;
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(JSON.stringify(reply.body));
  });
  server = listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  return {
    requests,
    api: createStoreApi({ url: `http://127.0.0.1:${port}/`, rootKey: () => "root_secret", ...options }),
  };
}

const create = { name: "editor" };

test("operator API client sends the root key and the body", async () => {
  const { api, requests } = await serve([done]);
  expect(await api.call("permissions.createRole", create)).toEqual({ data: { roleId: "role_1" } });
  expect(requests).toMatchObject([
    { path: "/v2/permissions.createRole", body: create, headers: { authorization: "Bearer root_secret" } },
  ]);
});

test("operator API client aborts a running call when the leadership ends, and sends no further calls", async () => {
  const term = new AbortController();
  const { api, requests } = await serve([], { signal: () => term.signal });
  const running = api.call("permissions.createRole", create);
  await waitFor("the call to arrive", () => requests.length === 1);
  term.abort();
  await expect(running).rejects.toThrow(ApiUnavailable);
  await expect(api.call("permissions.createRole", create)).rejects.toThrow(ApiUnavailable);
  expect(requests).toHaveLength(1);
});

test.each([
  { status: 404, kind: "role_not_found" },
  { status: 409, kind: "managed_by_manifest" },
  { status: 412, kind: "protected_resource" },
])("operator API client returns $status $kind as a value without a retry", async ({ status, kind }) => {
  const { api, requests } = await serve([failure(status, kind)]);
  expect(await api.call("permissions.createRole", create)).toEqual({ refusal: { status, kind, detail: "It is so." } });
  expect(requests).toHaveLength(1);
});

test("operator API client reports each invalid input with its location", async () => {
  const reply = failure(400, "invalid_input");
  const errors = [{ location: "body.name", message: "expected a string" }];
  const body = reply.body as { error: object };
  const { api } = await serve([{ ...reply, body: { ...body, error: { ...body.error, errors } } }]);
  expect((await api.call("permissions.createRole", create)).refusal).toMatchObject({ status: 400, faults: errors });
});

test("operator API client retries server errors", async () => {
  const { api, requests } = await serve([failure(500, "service_unavailable"), failure(503, ""), done]);
  expect(await api.call("permissions.createRole", create)).toEqual({ data: { roleId: "role_1" } });
  expect(requests).toHaveLength(3);
});

test("operator API client gives up after three attempts", async () => {
  const { api, requests } = await serve([failure(500, "unexpected_error")]);
  await expect(api.call("permissions.createRole", create)).rejects.toThrow(ApiUnavailable);
  expect(requests).toHaveLength(3);
});

test("operator API client returns a long Retry-After instead of waiting", async () => {
  const { api, requests } = await serve([
    { ...failure(429, "workspace_rate_limited"), headers: { "retry-after": "30" } },
  ]);
  await expect(api.call("permissions.createRole", create)).rejects.toThrow("429 workspace_rate_limited");
  expect(requests).toHaveLength(1);
});

test.each([401, 403])(
  "operator API client fails on status %d without a retry, and its message omits the root key",
  async (status) => {
    const { api, requests } = await serve([failure(status, "forbidden", "rbac.*.create_role is missing.")]);
    const error = await api.call("permissions.createRole", create).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiUnavailable);
    expect(String(error)).toContain("rbac.*.create_role is missing");
    expect(String(error)).not.toContain("root_secret");
    expect(requests).toHaveLength(1);
  },
);

test("operator API client rejects a 404 that does not come from the API", async () => {
  const { api } = await serve([{ status: 404, body: "not here" }]);
  await expect(api.call("permissions.createRole", create)).rejects.toThrow(ApiUnavailable);
});

test("operator API client distinguishes an unknown procedure from a missing object", async () => {
  const { api, requests } = await serve([failure(404, "not_found")]);
  const call = api.call("managed.getObject", { kind: "role", id: "role_1" });
  await expect(call).rejects.toThrow("the API does not have managed.getObject: it is older than this operator");
  expect(requests).toHaveLength(1);
});

test("operator API client times out when the server does not respond", async () => {
  const { api } = await serve([], { timeoutMs: 50 });
  await expect(api.call("permissions.createRole", create)).rejects.toThrow("the API is unreachable");
});

test("operator API client fails when the server is unreachable", async () => {
  const api = createStoreApi({ url: "http://127.0.0.1:9", rootKey: () => "root_secret" });
  await expect(api.call("permissions.createRole", create)).rejects.toThrow(ApiUnavailable);
});
