import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const statusOf = async (...args: Parameters<TestApp["call"]>) => (await t.call(...args)).status;
const create = (body: object = {}) => t.data("keys.createKey", { apiId, ...body });

describe("keys.getKey", () => {
  test("keys.getKey checks for 404, then 403, then 412 (decryption)", async () => {
    const { keyId } = await create();
    const rootKey = await t.rootKey(["api.*.update_key"]);
    expect(await statusOf("keys.getKey", { keyId: "key_missing", decrypt: true }, { rootKey })).toBe(404);
    expect(await statusOf("keys.getKey", { keyId, decrypt: true }, { rootKey })).toBe(403);
    const reply = await t.call("keys.getKey", { keyId, decrypt: true });
    expect(reply.body.error).toMatchObject({
      status: 412,
      title: "Precondition Failed",
      type: "https://docs.test/errors/precondition_failed",
    });
    expect(await statusOf("keys.getKey", { keyId, decrypt: false })).toBe(200);
  });

  test.each([
    { keyId: "ke", status: 400 },
    { keyId: "key", status: 404 },
    { keyId: "k".repeat(255), status: 404 },
    { keyId: "k".repeat(256), status: 400 },
    { keyId: "key-1", status: 400 },
  ])(
    "keys.getKey accepts only ids of 3 to 255 characters of [a-zA-Z0-9_]: status $status",
    async ({ keyId, status }) => {
      expect(await statusOf("keys.getKey", { keyId })).toBe(status);
    },
  );

  test("keys.getKey returns the identity of the key with meta and limits, unless the identity was deleted", async () => {
    const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: false };
    const { identityId } = await t.data("identities.createIdentity", {
      externalId: "shown",
      meta: { m: 1 },
      ratelimits: [limit],
    });
    const { keyId } = await create({ externalId: "shown" });
    expect((await t.data("keys.getKey", { keyId })).identity).toEqual({
      id: identityId,
      externalId: "shown",
      meta: { m: 1 },
      ratelimits: [{ id: expect.stringMatching(/^rl_/), ...limit }],
    });
    await t.deps.db.query("update identities set deleted_at = 1 where id = $1", [identityId]);
    expect(await t.data("keys.getKey", { keyId })).not.toHaveProperty("identity");
  });
});
