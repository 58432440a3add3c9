import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

const HOUR_MS = 3_600_000;

let t: TestApp;
let apiId: string;
let away = false;
beforeAll(async () => {
  t = await buildTestApp({
    deps: ({ counters }) => ({
      counters: {
        consume: (request) => (away ? Promise.reject(new CountersUnavailable("away")) : counters.consume(request)),
        close: () => counters.close(),
      },
    }),
  });
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const create = (body: object = {}) => t.data("keys.createKey", { apiId, ...body });
const details = (keyId: string) => t.data("admin.getKeyDetails", { keyId });
const limit = (name: string, autoApply = true) => ({ name, limit: 3, duration: 24 * HOUR_MS * 30, autoApply });

test("admin.getKeyDetails lists each permission once with its sources", async () => {
  await t.data("permissions.createRole", { name: "b-role", permissions: ["shared.read", "b.read"] });
  await t.data("permissions.createRole", { name: "a-role", permissions: ["shared.read"] });
  const { keyId, key } = await create({ roles: ["b-role", "a-role"], permissions: ["shared.read", "own.read"] });
  const shown = await details(keyId);
  expect(shown.roles.map(({ name }: { name: string }) => name)).toEqual(["a-role", "b-role"]);
  expect(shown.permissions).toEqual([
    { slug: "b.read", isDirect: false, roles: ["b-role"] },
    { slug: "own.read", isDirect: true, roles: [] },
    { slug: "shared.read", isDirect: true, roles: ["a-role", "b-role"] },
  ]);
  expect(shown.key).toEqual(await t.data("keys.getKey", { keyId }));
  expect(shown).toMatchObject({ apiId, apiName: "payments", state: { code: "VALID", reasons: [] } });
  expect(JSON.stringify(shown)).not.toContain(key);
});

test("admin.getKeyDetails shows limit counts without consuming them", async () => {
  const externalId = "with.limits";
  await t.data("identities.createIdentity", { externalId, ratelimits: [limit("both"), limit("shared")] });
  const { keyId, key } = await create({ externalId, ratelimits: [limit("both"), limit("on-request", false)] });
  const other = await create({ externalId });
  await t.data("keys.verifyKey", { key });
  await t.data("keys.verifyKey", { key: other.key });
  const used = async () =>
    (await details(keyId)).limits.map(
      (one: { name: string; of: string; isReplaced: boolean; current: { used: number } }) => [
        one.name,
        one.of,
        one.isReplaced,
        one.current.used,
      ],
    );
  const expected = [
    ["both", "key", false, 1],
    ["on-request", "key", false, 0],
    // The other key has used it.
    ["both", "identity", true, 1],
    ["shared", "identity", false, 2],
  ];
  expect(await used()).toEqual(expected);
  expect(await used()).toEqual(expected);
});

describe("the state equals the next verification:", () => {
  const stateOf = async ({ keyId, key }: { keyId: string; key: string }) => {
    const { state } = await details(keyId);
    expect((await t.data("keys.verifyKey", { key })).code).toBe(state.code);
    return state;
  };

  test("key state reports an exhausted limit only if the limit applies automatically", async () => {
    const made = await create({ ratelimits: [limit("auto"), limit("asked", false)] });
    for (let i = 0; i < 3; i++) {
      expect(await stateOf(made)).toEqual({ code: "VALID", reasons: [] });
    }
    expect(await stateOf(made)).toEqual({ code: "RATE_LIMITED", reasons: ["limitReached"] });
  });

  test("key state reports exhausted credits according to the Redis counter", async () => {
    const made = await create({ credits: { remaining: 1 } });
    expect(await stateOf(made)).toEqual({ code: "VALID", reasons: [] });
    expect(await stateOf(made)).toEqual({ code: "USAGE_EXCEEDED", reasons: ["noCredits"] });
  });

  test("state of a disabled and expired key reports both problems, disabled first", async () =>
    expect(await stateOf(await create({ enabled: false, expires: 1 }))).toEqual({
      code: "DISABLED",
      reasons: ["disabled", "expired"],
    }));

  test("key state reports a deleted key or API until retention ends", async () => {
    const made = await create();
    await t.data("keys.deleteKey", { keyId: made.keyId });
    expect(await stateOf(made)).toEqual({ code: "NOT_FOUND", reasons: ["keyDeleted"] });
    expect((await details(made.keyId)).deletedAt).toEqual(expect.any(Number));
    const short = await t.data("apis.createApi", { name: "short-lived" });
    const orphan = await create({ apiId: short.apiId });
    await t.data("apis.deleteApi", { apiId: short.apiId });
    expect(await stateOf(orphan)).toEqual({ code: "NOT_FOUND", reasons: ["apiDeleted"] });
    expect((await details(orphan.keyId)).apiDeletedAt).toEqual(expect.any(Number));
  });

  test("key stays valid after its identity was deleted", async () => {
    const made = await create({ externalId: "leaves.soon" });
    await t.data("identities.deleteIdentity", { identity: "leaves.soon" });
    expect(await stateOf(made)).toEqual({ code: "VALID", reasons: [] });
    expect((await details(made.keyId)).identityDeletedAt).toEqual(expect.any(Number));
  });
});

test("getKeyDetails of a permanently deleted key returns 404", async () => {
  const { keyId } = await create();
  await t.data("keys.deleteKey", { keyId, permanent: true });
  expect((await t.call("admin.getKeyDetails", { keyId })).status).toBe(404);
});

test("key state omits limit counts while counters are unavailable", async () => {
  const { keyId } = await create({ ratelimits: [limit("auto")] });
  away = true;
  try {
    const { limits, state } = await details(keyId);
    expect(limits[0]).not.toHaveProperty("current");
    expect(state.code).toBe("VALID");
  } finally {
    away = false;
  }
});
