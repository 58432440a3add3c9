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

  test("a valid key is described without its code", async () => {
    const expires = Date.now() + HOUR_MS;
    const { keyId, key } = await newKey({ externalId: "user_1", meta: { plan: "pro" }, expires });
    const reply = await verify(key, { apiId });
    expect([reply.status, reply.body]).toEqual([
      200,
      { keyId, valid: true, ownerId: "user_1", meta: { plan: "pro" }, expires },
    ]);
  });

  test("takes credits and counts limits like keys.verifyKey, and says what is left", async () => {
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

  test("an unknown and an expired key are 404, a disabled one and one of another API are 200", async () => {
    const expired = await newKey({ expires: Date.now() - HOUR_MS });
    const disabled = await newKey({ enabled: false });
    const { apiId: otherApi } = await t.data("apis.createApi", { name: "other" });
    const good = await newKey();
    const answers = [
      await verify("no_such_key"),
      await verify(expired.key),
      await verify(disabled.key),
      await verify(good.key, { apiId: otherApi }),
    ];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [404, { valid: false, code: "NOT_FOUND" }],
      [404, { valid: false, code: "EXPIRED" }],
      [200, { valid: false, code: "DISABLED" }],
      [200, { valid: false, code: "FORBIDDEN" }],
    ]);
  });

  test("what it does not take is ignored, and a missing key is 400", async () => {
    const { key } = await newKey({ permissions: ["a.b"] });
    const asked = { authorization: { permissions: "c.d" }, ratelimits: [{ name: "none" }] };
    expect((await verify(key, asked)).body.valid).toBe(true);
    const reply = await t.call("v1/keys/verify", { apiId }, { rootKey: null });
    expect([reply.status, reply.body.error.code]).toEqual([400, "BAD_REQUEST"]);
  });
});
