import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  await t.data("permissions.createRole", { name: "editor", permissions: ["role.write"] });
});
afterAll(() => t.close());

const create = (body: object = {}) => t.data("keys.createKey", { apiId, ...body });
const whoami = (key: string) => t.data("keys.whoami", { key });

test("whoami returns the same fields as getKey for a key string", async () => {
  const { keyId, key } = await create({
    prefix: "prod",
    name: "named",
    externalId: "user_1",
    meta: { a: 1 },
    roles: ["editor"],
    permissions: ["direct.read"],
    credits: { remaining: 5, refill: { interval: "monthly", amount: 3, refillDay: 31 } },
    ratelimits: [{ name: "requests", limit: 1, duration: 3_600_000, autoApply: true }],
  });
  const described = await whoami(key);
  expect(described).toEqual(await t.data("keys.getKey", { keyId }));
  expect(described).toMatchObject({ keyId, permissions: ["direct.read", "role.write"], roles: ["editor"] });
  expect(JSON.stringify(described)).not.toContain(key);
});

test("whoami charges nothing and records neither event nor audit entry", async () => {
  const { key } = await create({
    credits: { remaining: 1 },
    ratelimits: [{ name: "requests", limit: 1, duration: 3_600_000, autoApply: true }],
  });
  const rows = (await t.audit()).length;
  for (let i = 0; i < 3; i++) expect((await whoami(key)).credits).toEqual({ remaining: 1 });
  expect(await t.audit()).toHaveLength(rows);
  expect(await t.data("keys.verifyKey", { key })).toMatchObject({ code: "VALID", credits: 0 });
  expect(await whoami(key)).not.toHaveProperty("lastUsedAt");
});

test("whoami returns disabled and expired keys", async () => {
  const { key } = await create({ enabled: false, expires: 0 });
  expect(await whoami(key)).toMatchObject({ enabled: false, expires: 0 });
});

describe("404 without the secret", () => {
  const refusalOf = async (key: string, rootKey?: string) => {
    const { status, body } = await t.call("keys.whoami", { key }, rootKey === undefined ? {} : { rootKey });
    expect(status).toBe(404);
    expect(body.error.type).toBe("https://docs.test/errors/key_not_found");
    expect(JSON.stringify(body)).not.toContain(key);
    return body.error;
  };

  test("whoami returns the same 404 for unknown keys, root keys, deleted keys and keys of other workspaces", async () => {
    const unknown = await refusalOf("nobody_has_this");
    expect(await refusalOf(t.workspace.rootKey)).toEqual(unknown);
    const deleted = await create();
    expect(await refusalOf(deleted.keyId)).toEqual(unknown);
    await t.data("keys.deleteKey", { keyId: deleted.keyId });
    expect(await refusalOf(deleted.key)).toEqual(unknown);
    const other = await t.data("apis.createApi", { name: "gone" });
    const orphan = await t.data("keys.createKey", { apiId: other.apiId });
    await t.data("apis.deleteApi", { apiId: other.apiId });
    expect(await refusalOf(orphan.key)).toEqual(unknown);
    const mine = await create();
    const stranger = await t.makeWorkspace();
    expect(await refusalOf(mine.key, stranger.rootKey)).toEqual(unknown);
  });

  test("whoami checks for 404 before 403", async () => {
    const rootKey = await t.rootKey(["api.*.update_key"]);
    await refusalOf("nobody_has_this", rootKey);
    const { key } = await create();
    const refused = await t.call("keys.whoami", { key }, { rootKey });
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`api.*.read_key or api.${apiId}.read_key`);
  });
});

test.each([
  { body: { key: "" }, status: 400 },
  { body: { key: "k" }, status: 404 },
  { body: { key: "k".repeat(512) }, status: 404 },
  { body: { key: "k".repeat(513) }, status: 400 },
  { body: { key: null }, status: 400 },
  { body: {}, status: 400 },
  { body: { key: "k", decrypt: true }, status: 400 },
])("whoami accepts only key strings of 1 to 512 characters: status $status", async ({ body, status }) => {
  expect((await t.call("keys.whoami", body)).status).toBe(status);
});
