import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { buildTestApp, type TestApp, type Workspace } from "./app.ts";

/* The workspace quota as seen by callers (api-v2.md section 2.1). pipeline.test.ts tests counting and rejection. */

const HEADERS = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"] as const;

/** Creates a workspace with this unused quota. */
async function withQuota(t: TestApp, quota: number): Promise<Workspace> {
  const workspace = await t.makeWorkspace();
  await t.deps.db.query("update workspaces set quota_per_minute = $2 where id = $1", [workspace.id, quota]);
  return workspace;
}

describe("a workspace with a quota", () => {
  let t: TestApp;
  beforeAll(async () => {
    t = await buildTestApp();
  });
  afterAll(() => t.close());

  test.each([
    { name: "a success", path: "apis.createApi", body: { name: "abc" }, status: 200 },
    { name: "a list", path: "ratelimit.listNamespaces", body: {}, status: 200 },
    { name: "a verification", path: "keys.verifyKey", body: { key: "unknown" }, status: 200 },
    { name: "an error of the handler", path: "keys.getKey", body: { keyId: "key_missing" }, status: 404 },
    {
      name: "a body of more than 256 KiB",
      path: "apis.getApi",
      body: `${" ".repeat(300_000)}{"apiId":"api_missing0"}`,
      status: 404,
    },
  ])("response to $name has the quota headers", async ({ path, body, status }) => {
    const { rootKey } = await withQuota(t, 1000);
    const reply = await t.call(path, body, { rootKey });
    expect(reply.status).toBe(status);
    const [limit, remaining, reset, retryAfter] = HEADERS.map((name) => reply.headers[name]);
    expect([limit, remaining, retryAfter]).toEqual(["1000", "999", undefined]);
    expect(reset).toMatch(/^\d{1,2}$/);
    expect(Number(reset)).toBeLessThanOrEqual(60);
  });

  test("missing permission is reported after the quota counts the request", async () => {
    const { id } = await withQuota(t, 1000);
    const rootKey = await t.rootKey(["api.*.read_key"], { workspaceId: id });
    const reply = await t.call("apis.createApi", { name: "abc" }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.headers["ratelimit-remaining"]).toBe("999");
  });

  test("quota rejection has quota headers and Retry-After in seconds", async () => {
    const { rootKey } = await withQuota(t, 0);
    const reply = await t.call("apis.createApi", { name: "abc" }, { rootKey });
    expect(reply.status).toBe(429);
    expect(reply.headers).toMatchObject({ "ratelimit-limit": "0", "ratelimit-remaining": "0" });
    expect(reply.headers["ratelimit-reset"]).toMatch(/^\d{1,2}$/);
    expect(reply.headers["retry-after"]).toMatch(/^[1-9]\d?$/);
  });

  test("request rejected by the quota has no effect, and each workspace has its own quota", async () => {
    const [none, some] = [await withQuota(t, 0), await withQuota(t, 1000)];
    expect((await t.call("apis.createApi", { name: "abc" }, { rootKey: none.rootKey })).status).toBe(429);
    expect((await t.deps.db.query("select from apis where workspace_id = $1", [none.id])).rowCount).toBe(0);
    expect((await t.call("apis.createApi", { name: "abc" }, { rootKey: some.rootKey })).status).toBe(200);
  });

  test("response has no quota headers if the request is rejected before quota counting", async () => {
    const { rootKey } = await withQuota(t, 1000);
    const reply = await t.call("apis.createApi", {}, { rootKey });
    expect(reply.status).toBe(400);
    for (const name of HEADERS) expect(reply.headers[name]).toBeUndefined();
  });
});

test("response has no quota headers without a quota", async () => {
  const t = await buildTestApp();
  const reply = await t.call("apis.createApi", { name: "abc" });
  for (const name of HEADERS) expect(reply.headers[name]).toBeUndefined();
  await t.close();
});

test("every request is admitted without quota headers while counters are unavailable", async () => {
  const consume = async () => {
    throw new CountersUnavailable("the store is away");
  };
  const t = await buildTestApp({ deps: ({ counters }) => ({ counters: { ...counters, consume } }) });
  const { rootKey } = await withQuota(t, 1);
  for (let i = 0; i < 3; i++) {
    const reply = await t.call("apis.createApi", { name: "abc" }, { rootKey });
    expect(reply.status).toBe(200);
    for (const name of HEADERS) expect(reply.headers[name]).toBeUndefined();
  }
  expect(t.logs.join()).toContain("quotas not counted");
  await t.close();
});
