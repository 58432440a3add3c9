import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const daily = { interval: "daily", amount: 5 };
const monthly = { interval: "monthly", amount: 7, refillDay: 31 };
const MAX = Number.MAX_SAFE_INTEGER;

const create = async (credits?: object): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...(credits === undefined ? {} : { credits }) });
const change = (keyId: string, body: object) => t.data("keys.updateCredits", { keyId, ...body });
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const spend = (key: string, cost = 1) => t.data("keys.verifyKey", { key, credits: { cost } });

describe("returns the remaining credits", () => {
  test.each([
    { name: "set", before: { remaining: 10, refill: daily }, op: ["set", 3], after: { remaining: 3, refill: daily } },
    { name: "set 0", before: { remaining: 10 }, op: ["set", 0], after: { remaining: 0 } },
    { name: "set on an unlimited key", before: undefined, op: ["set", 4], after: { remaining: 4 } },
    { name: "set the greatest", before: undefined, op: ["set", MAX], after: { remaining: MAX } },
    { name: "set null", before: { remaining: 10, refill: monthly }, op: ["set", null], after: { remaining: null } },
    { name: "set nothing", before: { remaining: 10, refill: daily }, op: ["set"], after: { remaining: null } },
    { name: "set null on an unlimited key", before: undefined, op: ["set", null], after: { remaining: null } },
    {
      name: "increment",
      before: { remaining: 10, refill: monthly },
      op: ["increment", 5],
      after: { remaining: 15, refill: monthly },
    },
    { name: "increment 0", before: { remaining: 10 }, op: ["increment", 0], after: { remaining: 10 } },
    {
      name: "increment up to the greatest",
      before: { remaining: 1 },
      op: ["increment", MAX - 1],
      after: { remaining: MAX },
    },
    {
      name: "decrement",
      before: { remaining: 10, refill: daily },
      op: ["decrement", 4],
      after: { remaining: 6, refill: daily },
    },
    { name: "decrement 0", before: { remaining: 10 }, op: ["decrement", 0], after: { remaining: 10 } },
    { name: "decrement below 0", before: { remaining: 10 }, op: ["decrement", 11], after: { remaining: 0 } },
  ])("updateCredits applies the operation: $name", async ({ before, op: [operation, value], after }) => {
    const { keyId, key } = await create(before);
    await spend(key, 0);
    expect(await change(keyId, { operation, value })).toEqual(after);
    const isUnlimited = after.remaining === null;
    const described = await read(keyId);
    expect(described.credits).toEqual(isUnlimited ? undefined : after);
    expect(described.updatedAt).toEqual(expect.any(Number));
    expect((await spend(key, 0)).credits).toBe(isUnlimited ? undefined : after.remaining);
  });
});

describe("400 changes nothing", () => {
  test.each([
    { name: "increment of an unlimited key", before: undefined, body: { operation: "increment", value: 1 } },
    { name: "decrement of an unlimited key", before: undefined, body: { operation: "decrement", value: 1 } },
    { name: "increment by null", before: { remaining: 1 }, body: { operation: "increment", value: null } },
    { name: "decrement by nothing", before: { remaining: 1 }, body: { operation: "decrement" } },
    {
      name: "increment beyond the greatest",
      before: { remaining: 2 },
      body: { operation: "increment", value: MAX - 1 },
    },
    { name: "a negative value", before: { remaining: 2 }, body: { operation: "set", value: -1 } },
    { name: "a fraction", before: { remaining: 2 }, body: { operation: "set", value: 1.5 } },
    { name: "a text", before: { remaining: 2 }, body: { operation: "set", value: "5" } },
    { name: "beyond the greatest", before: { remaining: 2 }, body: { operation: "set", value: MAX + 1 } },
    { name: "another operation", before: { remaining: 2 }, body: { operation: "add", value: 1 } },
    { name: "no operation", before: { remaining: 2 }, body: { value: 1 } },
    { name: "another member", before: { remaining: 2 }, body: { operation: "set", value: 1, refill: daily } },
  ])("updateCredits with $name gets 400 and changes nothing", async ({ before, body }) => {
    const { keyId, key } = await create(before);
    await spend(key, 0);
    const as = await read(keyId);
    const rows = (await t.audit()).length;
    const reply = await t.call("keys.updateCredits", { keyId, ...body });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toMatch(/^body\./);
    expect(await read(keyId)).toEqual(as);
    expect(await t.audit()).toHaveLength(rows);
    expect((await spend(key, 0)).code).toBe("VALID");
  });

  test("updateCredits error names the invalid field", async () => {
    const problemOf = async (keyId: string, body: object) =>
      (await t.call("keys.updateCredits", { keyId, ...body })).body.error.errors[0].location;
    const unlimited = await create();
    expect(await problemOf(unlimited.keyId, { operation: "increment", value: 1 })).toBe("body.operation");
    expect(await problemOf(unlimited.keyId, { operation: "increment" })).toBe("body.value");
    const limited = await create({ remaining: 2 });
    expect(await problemOf(limited.keyId, { operation: "increment", value: MAX })).toBe("body.value");
  });
});

test("updateCredits checks for 404, then 403, then 400", async () => {
  const rootKey = await t.rootKey(["api.*.read_key"]);
  const wrong = { operation: "increment" };
  const missing = await t.call("keys.updateCredits", { keyId: "key_missing", ...wrong }, { rootKey });
  expect(missing.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/key_not_found" });
  const { keyId } = await create({ remaining: 1 });
  const refused = await t.call("keys.updateCredits", { keyId, ...wrong }, { rootKey });
  expect(refused.status).toBe(403);
  expect(refused.body.error.detail).toContain(`api.*.update_key or api.${apiId}.update_key`);
  expect((await t.call("keys.updateCredits", { keyId, ...wrong })).status).toBe(400);
  const stranger = await t.makeWorkspace();
  const foreign = await t.call("keys.updateCredits", { keyId, ...wrong }, { rootKey: stranger.rootKey });
  expect(foreign.status).toBe(404);
});

test("updateCredits of a managed key is allowed for any caller", async () => {
  const headers = { "Postern-Manager": "prod/Key/shop/credits" };
  const { keyId } = await t.data("keys.createKey", { apiId, credits: { remaining: 1 } }, { headers });
  expect(await change(keyId, { operation: "increment", value: 1 })).toEqual({ remaining: 2 });
  expect((await t.call("keys.updateKey", { keyId, enabled: false })).status).toBe(409);
});

test("updateCredits writes a key.update audit entry with the key and its API", async () => {
  const { keyId } = await t.data("keys.createKey", { apiId, name: "audited", credits: { remaining: 1 } });
  const reply = await t.call("keys.updateCredits", { keyId, operation: "increment", value: 0 });
  const rows = (await t.audit()).filter(({ request_id }) => request_id === reply.body.meta.requestId);
  expect(rows).toMatchObject([
    {
      event: "key.update",
      correlation_id: null,
      targets: [
        { type: "key", id: keyId, name: "audited" },
        { type: "api", id: apiId },
      ],
    },
  ]);
});

describe("while the key is in use", () => {
  test("updateCredits accounts for spent credits that are not yet stored", async () => {
    const { keyId, key } = await create({ remaining: 10 });
    for (let i = 0; i < 4; i++) await spend(key);
    expect(await change(keyId, { operation: "increment", value: 2 })).toEqual({ remaining: 8 });
    expect(await change(keyId, { operation: "decrement", value: 3 })).toEqual({ remaining: 5 });
    expect((await spend(key)).credits).toBe(4);
  });

  test("updateCredits and concurrent verifications lose no credits", async () => {
    const { keyId, key } = await create({ remaining: 1000 });
    const verified = Array.from({ length: 60 }, () => spend(key));
    const changed = Array.from({ length: 20 }, (_, i) =>
      i % 4 === 3
        ? change(keyId, { operation: "decrement", value: 7 })
        : change(keyId, { operation: "increment", value: 10 }),
    );
    const codes = (await Promise.all(verified)).map(({ code }) => code);
    await Promise.all(changed);
    expect(new Set(codes)).toEqual(new Set(["VALID"]));
    expect((await read(keyId)).credits).toEqual({ remaining: 1000 - 60 + 15 * 10 - 5 * 7 });
  });

  test("updateCredits never allows spending beyond the granted credits", async () => {
    const { keyId, key } = await create({ remaining: 5 });
    const verified = Array.from({ length: 60 }, () => spend(key));
    const changed = Array.from({ length: 10 }, () => change(keyId, { operation: "increment", value: 2 }));
    const codes = (await Promise.all(verified)).map(({ code }) => code);
    await Promise.all(changed);
    const valid = codes.filter((code) => code === "VALID").length;
    expect(codes.filter((code) => code === "USAGE_EXCEEDED")).toHaveLength(60 - valid);
    expect((await read(keyId)).credits).toEqual({ remaining: 25 - valid });
  });
});
