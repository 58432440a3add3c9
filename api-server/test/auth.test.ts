import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { buildTestApp, type TestApp } from "./app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const ask = (authorization: string | undefined) =>
  t.call(
    "apis.getApi",
    { apiId: "api_missing0" },
    { rootKey: null, headers: authorization === undefined ? {} : { authorization } },
  );

/** Changes a root key directly in the database and announces the change on the change stream. */
const change = async (rootKey: string, set: string) => {
  await t.deps.db.query(`update root_keys set ${set} where hash = $1`, [hashKey(rootKey)]);
  t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "rootKey", id: hashKey(rootKey) }]);
};

describe("the header", () => {
  test.each([
    { name: "missing", header: () => undefined, status: 401 },
    { name: "empty", header: () => "", status: 401 },
    { name: "another scheme", header: (key: string) => `Basic ${key}`, status: 401 },
    { name: "a small b", header: (key: string) => `bearer ${key}`, status: 401 },
    { name: "no space", header: (key: string) => `Bearer${key}`, status: 401 },
    { name: "no token", header: () => "Bearer   ", status: 401 },
    { name: "the token alone", header: (key: string) => key, status: 401 },
    { name: "several spaces", header: (key: string) => `  Bearer    ${key}  `, status: 404 },
    { name: "as it should be", header: (key: string) => `Bearer ${key}`, status: 404 },
  ])("call with the Authorization header $name gets $status", async ({ header, status }) => {
    const reply = await ask(header(t.workspace.rootKey));
    expect(reply.status).toBe(status);
    if (status === 401) {
      expect(reply.body.error).toMatchObject({ title: "Unauthorized", type: "https://docs.test/errors/unauthorized" });
      expect(reply.body.error).not.toHaveProperty("errors");
    }
  });
});

describe("the root key", () => {
  test("invalid root keys of any kind get the same response", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "abc" });
    const { key } = await t.data("keys.createKey", { apiId });
    const revoked = await t.rootKey(["api.*.read_api"]);
    await change(revoked, "deleted_at = 1");
    const disabled = await t.rootKey(["api.*.read_api"]);
    await change(disabled, "enabled = false");
    const expired = await t.rootKey(["api.*.read_api"], { expiresAt: t.deps.nowMs() - 1 });
    const bodies = [];
    for (const rootKey of ["root_never", revoked, key, disabled, expired]) {
      const { status, body } = await ask(`Bearer ${rootKey}`);
      expect(status).toBe(401);
      bodies.push(body.error);
    }
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
  });

  test("root key is valid through the exact millisecond of its expiry", async () => {
    const fixed = Date.now() + 1_000_000;
    let nowMs = fixed;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const rootKey = await clock.rootKey(["api.*.read_api"], { expiresAt: fixed });
    const at = async () => (await clock.call("apis.getApi", { apiId: "api_missing0" }, { rootKey })).status;
    expect(await at()).toBe(404);
    nowMs = fixed + 1;
    expect(await at()).toBe(401);
    await clock.close();
  });

  test("root key of a deleted workspace gets 401, and of a disabled workspace 403", async () => {
    const workspace = await t.makeWorkspace();
    const set = async (text: string) => {
      await t.deps.db.query(`update workspaces set ${text} where id = $1`, [workspace.id]);
      t.deps.projection.drop([{ workspaceId: workspace.id, kind: "workspace", id: workspace.id }]);
    };
    await set("enabled = false");
    const disabled = await ask(`Bearer ${workspace.rootKey}`);
    expect(disabled.body.error).toMatchObject({
      status: 403,
      title: "Forbidden",
      type: "https://docs.test/errors/forbidden",
    });
    await set("deleted_at = 1");
    expect((await ask(`Bearer ${workspace.rootKey}`)).status).toBe(401);
  });

  test("root key lookup is cached, whether or not the root key exists, until a change arrives", async () => {
    const rootKey = await t.rootKey(["api.*.read_api"]);
    expect((await ask(`Bearer ${rootKey}`)).status).toBe(404);
    await t.deps.db.query("update root_keys set deleted_at = 1 where hash = $1", [hashKey(rootKey)]);
    expect((await ask(`Bearer ${rootKey}`)).status).toBe(404);
    t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "rootKey", id: hashKey(rootKey) }]);
    expect((await ask(`Bearer ${rootKey}`)).status).toBe(401);
    await t.deps.db.query("update root_keys set deleted_at = null where hash = $1", [hashKey(rootKey)]);
    expect((await ask(`Bearer ${rootKey}`)).status).toBe(401);
    t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "rootKey", id: hashKey(rootKey) }]);
    expect((await ask(`Bearer ${rootKey}`)).status).toBe(404);
  });

  test("root key is reloaded after a new projection", async () => {
    const other = await buildTestApp();
    const status = async () => (await other.call("apis.getApi", { apiId: "api_missing0" })).status;
    expect(await status()).toBe(404);
    await other.deps.db.query("update root_keys set deleted_at = 1");
    expect(await status()).toBe(404);
    await other.edge.writer.begin("another projection", []);
    expect(await status()).toBe(401);
    await other.close();
  });

  test("root key is read from the database on every request while the change stream is over 30 s behind", async () => {
    const stale = await buildTestApp();
    const status = async () => (await stale.call("apis.getApi", { apiId: "api_missing0" })).status;
    expect(await status()).toBe(404);
    await stale.deps.db.query("update root_keys set deleted_at = 1");
    expect(await status()).toBe(404);
    stale.stopHeartbeats();
    stale.advance(31_000);
    expect(await status()).toBe(401);
    await stale.close();
  });

  test("using a root key records no event and no last use", async () => {
    const rootKey = await t.rootKey(["api.*.read_api"]);
    const before = await t.deps.db.query("select * from root_keys where hash = $1", [hashKey(rootKey)]);
    await ask(`Bearer ${rootKey}`);
    const after = await t.deps.db.query("select * from root_keys where hash = $1", [hashKey(rootKey)]);
    expect(after.rows).toEqual(before.rows);
  });

  test.each([["*"], ["api.*.*"], ["api.*"], ["API.*.read_api"], ["api.*.read_apis"]])(
    "invalid root key permission %s grants nothing",
    async (grant) => {
      const rootKey = await t.rootKey([grant]);
      const reply = await ask(`Bearer ${rootKey}`);
      expect(reply.status).toBe(403);
      expect(reply.body.error.detail).toContain("api.*.read_api or api.api_missing0.read_api");
      expect(reply.body.error.detail).not.toContain(grant === "api.*" || grant === "*" ? "held" : grant);
    },
  );
});
