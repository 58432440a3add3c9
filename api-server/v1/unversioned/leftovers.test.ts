import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;
const newKey = async (body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...body });

describe("POST /v1/keys/verify", () => {
  const verify = (key: string, more: object = {}) => t.call("v1/keys/verify", { key, ...more }, { rootKey: null });

  test("POST /v1/keys/verify returns no code for a valid key", async () => {
    const expires = Date.now() + HOUR_MS;
    const { keyId, key } = await newKey({ externalId: "user_1", meta: { plan: "pro" }, expires });
    const reply = await verify(key, { apiId });
    expect([reply.status, reply.body]).toEqual([
      200,
      { keyId, valid: true, ownerId: "user_1", meta: { plan: "pro" }, expires },
    ]);
  });

  test("POST /v1/keys/verify charges credits and limits like keys.verifyKey", async () => {
    const ratelimits = [{ name: "default", limit: 2, duration: HOUR_MS, autoApply: true }];
    const { keyId, key } = await newKey({ credits: { remaining: 10 }, ratelimits });
    const valid = await verify(key);
    const ratelimit = { limit: 2, remaining: 1, reset: expect.any(Number) };
    expect([valid.status, valid.body]).toEqual([200, { valid: true, keyId, remaining: 9, ratelimit }]);
    expect((await t.data("v1/keys.verifyKey", { key })).remaining).toBe(8);
    const refused = await verify(key);
    expect([refused.status, refused.body]).toEqual([
      200,
      { valid: false, code: "RATE_LIMITED", ratelimit: { ...ratelimit, remaining: 0 } },
    ]);
  });

  test("POST /v1/keys/verify responds 404 for unknown and expired keys, and 200 for disabled keys", async () => {
    const expired = await newKey({ expires: Date.now() - HOUR_MS });
    const disabled = await newKey({ enabled: false });
    const { apiId: otherApi } = await t.data("apis.createApi", { name: "other" });
    const good = await newKey();
    const responses = [
      await verify("no_such_key"),
      await verify(expired.key),
      await verify(disabled.key),
      await verify(good.key, { apiId: otherApi }),
    ];
    expect(responses.map(({ status, body }) => [status, body])).toEqual([
      [404, { valid: false, code: "NOT_FOUND" }],
      [404, { valid: false, code: "EXPIRED" }],
      [200, { valid: false, code: "DISABLED" }],
      [200, { valid: false, code: "FORBIDDEN" }],
    ]);
  });

  test("POST /v1/keys/verify ignores unknown members and rejects a missing key with 400", async () => {
    const { key } = await newKey({ permissions: ["a.b"] });
    const asked = { authorization: { permissions: "c.d" }, ratelimits: [{ name: "none" }] };
    expect((await verify(key, asked)).body.valid).toBe(true);
    const reply = await t.call("v1/keys/verify", { apiId }, { rootKey: null });
    expect([reply.status, reply.body.error.code]).toEqual([400, "BAD_REQUEST"]);
  });
});

describe("POST /v1/keys", () => {
  const create = (body: object) => t.call("v1/keys", { apiId, ...body });

  test("POST /v1/keys creates a key with owner, limit and credits visible in v2", async () => {
    const made = await create({
      prefix: "prod",
      name: "old",
      ownerId: "owner_of_old",
      meta: { plan: "pro" },
      remaining: 5,
      ratelimit: { type: "fast", limit: 7, refillRate: 1, refillInterval: 60_000 },
    });
    expect([made.status, Object.keys(made.body)]).toEqual([200, ["keyId", "key"]]);
    expect(made.body.key).toMatch(/^prod_/);
    const { keyId, key } = made.body;
    const shown = await t.data("keys.getKey", { keyId });
    expect(shown).toMatchObject({ name: "old", meta: { plan: "pro" }, credits: { remaining: 5 } });
    expect(shown).not.toHaveProperty("identity");
    expect(shown.ratelimits).toMatchObject([{ name: "default", limit: 7, duration: 60_000, autoApply: true }]);
    expect((await t.call("identities.getIdentity", { identity: "owner_of_old" })).status).toBe(404);
    expect((await t.data("v1/keys.verifyKey", { key })).ownerId).toBe("owner_of_old");
  });

  test.each([
    { body: { prefix: "x".repeat(8) }, status: 200 },
    { body: { prefix: "x".repeat(9) }, status: 400 },
    { body: { remaining: 0 }, status: 400 },
    { body: { byteLength: 15 }, status: 400 },
    { body: { ratelimit: { limit: 1, refillRate: 1 } }, status: 400 },
    { body: { ratelimit: { limit: 1, refillRate: 1, refillInterval: 999 } }, status: 400 },
    { body: { apiId: "api_of_none" }, status: 404 },
  ])("POST /v1/keys with $body returns $status", async ({ body, status }) => {
    expect((await create(body)).status).toBe(status);
  });
});

describe("GET /v1/apis/{apiId}/keys", () => {
  test("GET /v1/apis/{apiId}/keys lists keys by offset and by owner", async () => {
    const { apiId: listed } = await t.data("apis.createApi", { name: "listed" });
    const ids: string[] = [];
    for (let at = 0; at < 5; at++) {
      const ownerId = at === 2 ? "listed_owner" : `other_${at}`;
      ids.push((await t.data("v1/keys", { apiId: listed, ownerId })).keyId);
    }
    const list = (query: object) => t.data("v1/apis/:apiId/keys", { apiId: listed, ...query });
    const idsOf = ({ keys }: { keys: { id: string }[] }) => keys.map(({ id }) => id);
    const pages = [await list({ limit: 2 }), await list({ limit: 2, offset: 2 }), await list({ limit: 2, offset: 4 })];
    expect(pages.flatMap(idsOf)).toEqual(ids.toSorted());
    expect(pages.map(({ total }) => total)).toEqual([5, 5, 5]);
    expect(idsOf(await list({ offset: 5 }))).toEqual([]);
    const owned = await list({ ownerId: "listed_owner" });
    expect(idsOf(owned)).toEqual([ids[2]]);
    const shown = owned.keys[0];
    for (const member of ["roles", "permissions", "refill", "identity", "enabled"])
      expect(shown).not.toHaveProperty(member);
  });

  test.each([100, 101, 255, 256, 3000])(
    "GET /v1/apis/{apiId}/keys with an id of %d characters gets 404",
    async (length) => {
      const reply = await t.call("v1/apis/:apiId/keys", { apiId: "a".repeat(length) });
      expect([reply.status, reply.body.error.code]).toEqual([404, "NOT_FOUND"]);
    },
  );

  test("GET /v1/apis/{apiId}/keys of another workspace gets 404", async () => {
    const { rootKey } = await t.makeWorkspace();
    const reply = await t.call("v1/apis/:apiId/keys", { apiId }, { rootKey });
    expect([reply.status, reply.body.error.code]).toEqual([404, "NOT_FOUND"]);
  });
});
