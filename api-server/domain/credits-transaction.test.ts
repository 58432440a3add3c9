import { afterEach, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../test/app.ts";

let t: TestApp | undefined;
afterEach(() => t?.close());

/** An API whose shared credit counters fail from the moment on that `fail` names. */
async function withFailing(fail: "suspend" | "settle") {
  let failing = false;
  t = await buildTestApp({
    deps: ({ credits }) => ({
      credits: {
        ...credits,
        change: async (tx, key, change) => {
          if (failing && fail === "suspend") throw new Error("connection lost");
          return credits.change(tx, key, change);
        },
        settle: async (key) => {
          if (failing) throw new Error("connection lost");
          await credits.settle(key);
        },
      },
    }),
  });
  const { apiId } = await t.data("apis.createApi", { name: "abc" });
  const { keyId, key } = await t.data("keys.createKey", { apiId, credits: { remaining: 5 } });
  await t.data("keys.verifyKey", { key });
  failing = true;
  return { t, keyId, key };
}

test("a counter that cannot be suspended undoes the whole change", async () => {
  const { t: app, keyId } = await withFailing("suspend");
  const reply = await app.call("keys.updateKey", { keyId, name: "changed", credits: { remaining: 50 } });
  expect(reply.status).toBe(500);
  expect(await app.data("keys.getKey", { keyId })).not.toHaveProperty("name");
});

test("a counter that cannot be opened again is opened by the next spender; the change was made and is answered so", async () => {
  const { t: app, keyId, key } = await withFailing("settle");
  expect((await app.call("keys.updateKey", { keyId, credits: { remaining: 50 } })).status).toBe(200);
  expect(app.logs.join()).toContain("credit counter not opened again");
  expect(await app.data("keys.verifyKey", { key })).toMatchObject({ code: "VALID", credits: 49 });
});
