import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
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

describe("keys.deleteKey", () => {
  test.each([{ permanent: false }, { permanent: true }])(
    "keys.deleteKey with permanent $permanent invalidates the key for the next verification",
    async ({ permanent }) => {
      const { keyId, key } = await create({
        credits: { remaining: 5 },
        permissions: ["a.b"],
        externalId: "del",
        ratelimits: [{ name: "abc", limit: 1, duration: 1000 }],
      });
      expect((await t.data("keys.verifyKey", { key })).code).toBe("VALID");
      expect(await t.data("keys.deleteKey", { keyId, permanent })).toEqual({});
      expect(await t.data("keys.verifyKey", { key })).toEqual({ valid: false, code: "NOT_FOUND" });
      for (const path of ["keys.getKey", "keys.updateKey"]) expect(await statusOf(path, { keyId })).toBe(404);
      for (const again of [false, true])
        expect(await statusOf("keys.deleteKey", { keyId, permanent: again })).toBe(404);
      const { rows } = await t.deps.db.query(
        `select (select count(*) from keys where hash = $1) as keys, (select count(*) from key_credits where key_id = $2) as credits,
              (select count(*) from ratelimits where key_id = $2) as limits, (select count(*) from key_permissions where key_id = $2) as links`,
        [hashKey(key), keyId],
      );
      expect(rows[0]).toEqual(
        permanent ? { keys: 0, credits: 0, limits: 0, links: 0 } : { keys: 1, credits: 1, limits: 1, links: 1 },
      );
      expect(
        (await t.audit()).filter(({ event, targets }) => event === "key.delete" && targets[0]?.id === keyId),
      ).toHaveLength(1);
    },
  );

  test("keys.deleteKey called twice concurrently returns 200 once and 404 once", async () => {
    const { keyId } = await create();
    const statuses = await Promise.all([
      statusOf("keys.deleteKey", { keyId }),
      statusOf("keys.deleteKey", { keyId, permanent: true }),
    ]);
    expect(statuses.toSorted()).toEqual([200, 404]);
  });
});
