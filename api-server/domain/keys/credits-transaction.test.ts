import { afterEach, expect, test } from "vitest";
import { createMemoryEdge } from "../../../edge/open.ts";
import { createCreditService } from "../../credits/postgres-credits.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp | undefined;
afterEach(() => t?.close());

/** An API whose shared credit counters fail from the moment on, in what `fail` names. */
async function withFailing(fail: "suspend" | "load") {
  let failing = false;
  const edge = createMemoryEdge();
  const store = new Proxy(edge.credits, {
    get(target, name) {
      if (failing && name === fail) return () => Promise.reject(new Error("connection lost"));
      const member = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  t = await buildTestApp({
    deps: ({ db, nowMs, log }) => ({
      counters: edge.counters({ timeoutMs: 1000 }),
      credits: createCreditService({ db, store, nowMs, log }),
    }),
  });
  const { apiId } = await t.data("apis.createApi", { name: "abc" });
  const { keyId, key } = await t.data("keys.createKey", { apiId, credits: { remaining: 5 } });
  await t.data("keys.verifyKey", { key });
  failing = true;
  const mend = () => {
    failing = false;
  };
  return { t, keyId, key, mend };
}

test("failure to suspend a credit counter rolls back the whole change", async () => {
  const { t: app, keyId } = await withFailing("suspend");
  const reply = await app.call("keys.updateKey", { keyId, name: "changed", credits: { remaining: 50 } });
  expect(reply.status).toBe(500);
  expect(await app.data("keys.getKey", { keyId })).not.toHaveProperty("name");
});

test("change succeeds even if the credit counter cannot be reopened, and the next call that spends credits reopens it", async () => {
  const { t: app, keyId, key, mend } = await withFailing("load");
  expect((await app.call("keys.updateKey", { keyId, credits: { remaining: 50 } })).status).toBe(200);
  expect(app.logs.join()).toContain("credit counters stay closed until a spender requests them");
  mend();
  expect(await app.data("keys.verifyKey", { key })).toMatchObject({ code: "VALID", credits: 49 });
});
