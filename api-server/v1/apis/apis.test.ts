import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { insertKeys, keyRow } from "../../../test/harness/rows.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

describe("apis.createApi", () => {
  test("v1 apis.createApi creates an API that v2 also returns, and writes to the audit log", async () => {
    const created = await t.data("v1/apis.createApi", { name: "payments" });
    expect(created).toEqual({ apiId: expect.stringMatching(/^api_/), name: "payments" });
    expect(await t.data("apis.getApi", { apiId: created.apiId })).toEqual({ id: created.apiId, name: "payments" });
    const [row] = (await t.audit()).filter(({ targets }) => targets.some(({ id }) => id === created.apiId));
    expect(row).toMatchObject({ event: "api.create", actor: { type: "rootkey" }, request_id: expect.any(String) });
  });

  test.each([
    { name: "ab", status: 400 },
    { name: "abc", status: 200 },
    { name: "ü".repeat(255), status: 200 },
    { name: "x".repeat(256), status: 400 },
  ])("v1 apis.createApi with a name of $name.length characters returns $status", async ({ name, status }) => {
    expect((await t.call("v1/apis.createApi", { name })).status).toBe(status);
  });
});

describe("apis.getApi", () => {
  test("v1 apis.getApi returns id, workspace and name of an API created through v2", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "orders" });
    const workspaceId = t.workspace.id;
    expect(await t.data("v1/apis.getApi", { apiId })).toEqual({ id: apiId, workspaceId, name: "orders" });
  });

  test("v1 apis.getApi of a missing API gets 404 NOT_FOUND", async () => {
    const reply = await t.call("v1/apis.getApi", { apiId: "api_none" });
    expect(reply.status).toBe(404);
    expect(reply.body.error).toMatchObject({
      code: "NOT_FOUND",
      message: "There is no API api_none in the workspace.",
    });
  });
});

const makeApi = async (): Promise<string> => (await t.data("apis.createApi", { name: "orders" })).apiId;
const makeKey = (apiId: string, more: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...more });
const codeOf = async (key: string): Promise<string> => (await t.data("keys.verifyKey", { key })).code;
/** By the state of their rows. */
const keysOf = async (apiId: string) => {
  const text = `select count(*) filter (where deleted_at is null) as live, count(*) filter (where deleted_at is not null) as marked
                  from keys where api_id = $1`;
  return (await t.deps.db.query<{ live: number; marked: number }>(text, [apiId])).rows[0];
};

describe("apis.listKeys", () => {
  const list = (query: object) => t.data("v1/apis.listKeys", query);
  const idsOf = ({ keys }: { keys: { id: string }[] }): string[] => keys.map(({ id }) => id);

  test("v1 apis.listKeys pages return all live keys, ordered by id", async () => {
    const api = { workspaceId: t.workspace.id, apiId: await makeApi() };
    await insertKeys(t.deps.db, api, { to: 7 });
    await t.data("keys.deleteKey", { keyId: keyRow(api, 3).id });
    const expected = [0, 1, 2, 4, 5, 6].map((n) => keyRow(api, n).id).sort();
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await list({ apiId: api.apiId, limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.total).toBe(6);
      pages.push(idsOf(page));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(pages).toEqual([expected.slice(0, 3), expected.slice(3)]);
    expect(idsOf(await list({ apiId: api.apiId }))).toEqual(expected);
  });

  test("v1 apis.listKeys filters by externalId and ownerId, and returns the total number of keys in the API", async () => {
    const apiId = await makeApi();
    const linked = await makeKey(apiId, { externalId: "user_list" });
    const told = await makeKey(apiId);
    await t.deps.db.query("update keys set owner_id = 'user_list' where id = $1", [told.keyId]);
    await makeKey(apiId);
    const both = [linked.keyId, told.keyId].sort();
    expect(await list({ apiId, externalId: "user_list" })).toMatchObject({ keys: [{ id: linked.keyId }], total: 3 });
    expect(idsOf(await list({ apiId, ownerId: "user_list" }))).toEqual(both);
    expect(idsOf(await list({ apiId, ownerId: "user_none", externalId: "user_list" }))).toEqual([linked.keyId]);
    expect(await list({ apiId, externalId: "user_none" })).toEqual({ keys: [], total: 0 });
    expect(await list({ apiId, ownerId: "user_none" })).toEqual({ keys: [], total: 3 });
  });

  test("v1 apis.listKeys decrypts recoverable keys only on request, and returns the environment", async () => {
    const apiId = await makeApi();
    await t.deps.db.query("update apis set key_encryption = true where id = $1", [apiId]);
    const recoverable = await makeKey(apiId, { recoverable: true });
    const plain = await makeKey(apiId);
    await t.deps.db.query("update keys set environment = 'test' where id = $1", [plain.keyId]);
    const byId = new Map<string, object>();
    for (const key of (await list({ apiId, decrypt: true })).keys) byId.set(key.id, key);
    expect(byId.get(recoverable.keyId)).toMatchObject({ plaintext: recoverable.key, roles: [], permissions: [] });
    expect(byId.get(plain.keyId)).not.toHaveProperty("plaintext");
    expect(byId.get(plain.keyId)).toMatchObject({ environment: "test", apiId, enabled: true });
    for (const key of (await list({ apiId })).keys) expect(key).not.toHaveProperty("plaintext");
  });

  test("v1 apis.listKeys of a missing API gets 404", async () => {
    expect((await t.call("v1/apis.listKeys", { apiId: "api_none" })).status).toBe(404);
  });
});

describe("apis.deleteApi", () => {
  test("v1 apis.deleteApi invalidates its keys for the next verification", async () => {
    const apiId = await makeApi();
    const { key } = await makeKey(apiId);
    expect(await codeOf(key)).toBe("VALID");
    expect(await t.data("v1/apis.deleteApi", { apiId })).toEqual({});
    expect(await codeOf(key)).toBe("NOT_FOUND");
    expect((await t.call("v1/apis.deleteApi", { apiId })).status).toBe(404);
    expect((await t.call("apis.getApi", { apiId })).status).toBe(404);
  });

  test("v1 apis.deleteApi of a protected API gets 412 DELETE_PROTECTED without changes", async () => {
    const apiId = await makeApi();
    await t.deps.db.query("update apis set delete_protection = true where id = $1", [apiId]);
    const reply = await t.call("v1/apis.deleteApi", { apiId });
    expect([reply.status, reply.body.error.code]).toEqual([412, "DELETE_PROTECTED"]);
    expect((await t.call("v1/apis.getApi", { apiId })).status).toBe(200);
    // That of the keys is another matter.
    await makeKey(apiId);
    expect(await t.data("v1/apis.deleteKeys", { apiId })).toEqual({ deletedKeys: 1 });
  });
});

describe("apis.deleteKeys", () => {
  test("v1 apis.deleteKeys soft-deletes all live keys of the API and audits each", async () => {
    const [apiId, other] = [await makeApi(), await makeApi()];
    const [plain, limited, foreign] = [
      await makeKey(apiId, { name: "plain" }),
      await makeKey(apiId, { credits: { remaining: 5 } }),
      await makeKey(other),
    ];
    await codeOf(limited.key);
    expect(await t.data("v1/apis.deleteKeys", { apiId })).toEqual({ deletedKeys: 2 });
    expect(await Promise.all([plain, limited, foreign].map(({ key }) => codeOf(key)))).toEqual([
      "NOT_FOUND",
      "NOT_FOUND",
      "VALID",
    ]);
    expect(await keysOf(apiId)).toEqual({ live: 0, marked: 2 });
    const deleted = (await t.audit()).filter(({ event }) => event === "key.delete");
    const named = deleted.flatMap(({ targets }) => targets.map(({ id }) => id));
    expect(named).toEqual(expect.arrayContaining([plain.keyId, limited.keyId]));
    expect(named).not.toContain(foreign.keyId);
    expect(await t.data("v1/apis.deleteKeys", { apiId })).toEqual({ deletedKeys: 0 });
  });

  test("v1 apis.deleteKeys with `permanent` removes all rows and counts them", async () => {
    const apiId = await makeApi();
    await makeKey(apiId);
    await t.data("v1/apis.deleteKeys", { apiId });
    await makeKey(apiId, { credits: { remaining: 5 } });
    await makeKey(apiId);
    expect(await t.data("v1/apis.deleteKeys", { apiId, permanent: true })).toEqual({ deletedKeys: 3 });
    expect(await keysOf(apiId)).toEqual({ live: 0, marked: 0 });
  });

  test("v1 apis.deleteKeys deletes each of thousands of keys exactly once, in several transactions", async () => {
    for (const [permanent, count] of [
      [false, 1201],
      [true, 1000],
    ] as const) {
      const api = { workspaceId: t.workspace.id, apiId: await makeApi() };
      await insertKeys(t.deps.db, api, { to: count });
      expect(await t.data("v1/apis.deleteKeys", { apiId: api.apiId, permanent })).toEqual({ deletedKeys: count });
      expect(await keysOf(api.apiId)).toEqual({ live: 0, marked: permanent ? 0 : count });
      const text = `select count(distinct target ->> 'id') as n
                      from audit_log a, jsonb_array_elements(a.targets) as target
                     where a.event = 'key.delete' and target ->> 'id' = any ($1)`;
      const keyIds = Array.from({ length: count }, (_, n) => keyRow(api, n).id);
      expect((await t.deps.db.query<{ n: number }>(text, [keyIds])).rows[0]?.n).toBe(count);
    }
  });

  test("v1 apis.deleteKeys with a managed key gets 409 CONFLICT and deletes nothing", async () => {
    const apiId = await makeApi();
    await makeKey(apiId);
    const { keyId } = await makeKey(apiId);
    await t.deps.db.query("update keys set manager = 'main/Kind/shop/key' where id = $1", [keyId]);
    const reply = await t.call("v1/apis.deleteKeys", { apiId });
    expect([reply.status, reply.body.error.code]).toEqual([409, "CONFLICT"]);
    expect(reply.body.error.message).toContain(`${keyId} is managed by main/Kind/shop/key`);
    expect(await keysOf(apiId)).toEqual({ live: 2, marked: 0 });
  });

  test("v1 apis.deleteKeys of a missing API gets 404", async () => {
    expect((await t.call("v1/apis.deleteKeys", { apiId: "api_none" })).status).toBe(404);
  });
});
