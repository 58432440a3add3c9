import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  await t.data("permissions.createRole", { name: "editor", permissions: ["role.write"] });
  await t.data("permissions.createRole", { name: "viewer", permissions: ["role.read"] });
});
afterAll(() => t.close());

const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
const full = {
  name: "before",
  externalId: "user_before",
  meta: { a: 1, b: { c: 2 } },
  permissions: ["direct.read"],
  roles: ["editor"],
  expires: 4_000_000_000_000,
  credits: { remaining: 10, refill: { interval: "daily", amount: 5 } },
  ratelimits: [limit],
};
const create = async (body: object = full): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...body });
const update = (keyId: string, body: object) => t.data("keys.updateKey", { keyId, ...body });
const read = (keyId: string) => t.data("keys.getKey", { keyId });

test("updateKey without fields changes only updatedAt", async () => {
  const { keyId } = await create();
  const before = await read(keyId);
  expect(before.updatedAt).toBeUndefined();
  expect(await update(keyId, {})).toEqual({});
  expect(await read(keyId)).toEqual({ ...before, updatedAt: expect.any(Number) });
});

describe("one field leaves the others unchanged", () => {
  test.each([
    { name: "name", body: { name: "after" }, change: { name: "after" } },
    { name: "name removed", body: { name: null }, change: { name: undefined } },
    { name: "meta replaced whole", body: { meta: { b: 3 } }, change: { meta: { b: 3 } } },
    { name: "meta removed", body: { meta: null }, change: { meta: undefined } },
    { name: "meta emptied", body: { meta: {} }, change: { meta: undefined } },
    { name: "expires", body: { expires: 4_000_000_000_001 }, change: { expires: 4_000_000_000_001 } },
    { name: "expires 0", body: { expires: 0 }, change: { expires: 0 } },
    { name: "expires removed", body: { expires: null }, change: { expires: undefined } },
    { name: "enabled", body: { enabled: false }, change: { enabled: false } },
    { name: "detached", body: { externalId: null }, change: { identity: undefined } },
    {
      name: "direct permissions replaced",
      body: { permissions: ["other.read"] },
      change: { permissions: ["other.read", "role.write"] },
    },
    { name: "direct permissions removed", body: { permissions: [] }, change: { permissions: ["role.write"] } },
    {
      name: "roles replaced",
      body: { roles: ["VIEWER"] },
      change: { roles: ["viewer"], permissions: ["direct.read", "role.read"] },
    },
    { name: "roles removed", body: { roles: [] }, change: { roles: undefined, permissions: ["direct.read"] } },
    { name: "limits removed by []", body: { ratelimits: [] }, change: { ratelimits: undefined } },
    { name: "limits removed by null", body: { ratelimits: null }, change: { ratelimits: undefined } },
  ])("updateKey changes only one field: $name", async ({ body, change }) => {
    const { keyId } = await create();
    const before = await read(keyId);
    await update(keyId, body);
    // toEqual takes a member that is undefined for one that is not there.
    expect(await read(keyId)).toEqual({ ...before, ...change, updatedAt: expect.any(Number) });
  });

  test("updateKey with externalId links an existing or new identity", async () => {
    const { keyId } = await create();
    await update(keyId, { externalId: "user_after" });
    const first = (await read(keyId)).identity;
    expect(first).toMatchObject({ externalId: "user_after" });
    const other = await create({ externalId: "user_after" });
    expect((await read(other.keyId)).identity.id).toBe(first.id);
  });

  test("updateKey keeps the id of a limit whose name is unchanged", async () => {
    const { keyId } = await create({ ratelimits: [limit, { ...limit, name: "gone" }] });
    const before = (await read(keyId)).ratelimits.find(({ name }: { name: string }) => name === "requests");
    await update(keyId, {
      ratelimits: [
        { ...limit, limit: 99 },
        { ...limit, name: "fresh" },
      ],
    });
    const after = (await read(keyId)).ratelimits;
    expect(after).toMatchObject([{ name: "fresh" }, { ...before, limit: 99 }]);
  });
});

describe("credits", () => {
  const daily = { interval: "daily", amount: 5 };
  const monthly = { interval: "monthly", amount: 7, refillDay: 31 };
  const limited = { remaining: 10, refill: daily };
  const UNLIMITED = undefined;
  test.each([
    { name: "omitted", before: limited, credits: undefined, after: limited },
    { name: "null", before: limited, credits: null, after: UNLIMITED },
    { name: "{}", before: limited, credits: {}, after: limited },
    { name: "{} on an unlimited key", before: { remaining: null }, credits: {}, after: UNLIMITED },
    { name: "remaining", before: limited, credits: { remaining: 3 }, after: { remaining: 3, refill: daily } },
    { name: "remaining null", before: limited, credits: { remaining: null }, after: UNLIMITED },
    { name: "refill", before: limited, credits: { refill: monthly }, after: { remaining: 10, refill: monthly } },
    { name: "refill null", before: limited, credits: { refill: null }, after: { remaining: 10 } },
    {
      name: "both",
      before: limited,
      credits: { remaining: 0, refill: monthly },
      after: { remaining: 0, refill: monthly },
    },
    {
      name: "both on an unlimited key",
      before: { remaining: null },
      credits: { remaining: 4, refill: daily },
      after: { remaining: 4, refill: daily },
    },
    {
      name: "remaining on an unlimited key",
      before: { remaining: null },
      credits: { remaining: 4 },
      after: { remaining: 4 },
    },
  ])("updateKey applies the change of credits: $name", async ({ before, credits, after }) => {
    const { keyId, key } = await create({ credits: before });
    await t.data("keys.verifyKey", { key, credits: { cost: 0 } });
    await update(keyId, { credits });
    expect((await read(keyId)).credits).toEqual(after);
    const verified = await t.data("keys.verifyKey", { key, credits: { cost: 0 } });
    expect(verified.credits).toBe(after?.remaining);
  });

  test.each([
    { name: "a refill on an unlimited key", before: { remaining: null }, credits: { refill: daily } },
    { name: "a refill while becoming unlimited", before: limited, credits: { remaining: null, refill: daily } },
    { name: "monthly without a day", before: limited, credits: { refill: { interval: "monthly", amount: 1 } } },
    { name: "daily with a day", before: limited, credits: { refill: { interval: "daily", amount: 1, refillDay: 1 } } },
    { name: "negative", before: limited, credits: { remaining: -1 } },
    { name: "an unknown member", before: limited, credits: { nope: 1 } },
  ])("updateKey with $name gets 400 and changes nothing", async ({ before, credits }) => {
    const { keyId } = await create({ credits: before });
    const as = await read(keyId);
    const reply = await t.call("keys.updateKey", { keyId, name: "changed", permissions: ["never.made"], credits });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toMatch(/^body\.credits/);
    expect(await read(keyId)).toEqual(as);
  });

  test("updateKey that sets credits overrides spending that is not yet in Postgres, from the next verification", async () => {
    const { keyId, key } = await create({ credits: { remaining: 100 } });
    for (let i = 0; i < 5; i++) await t.data("keys.verifyKey", { key });
    expect((await read(keyId)).credits).toEqual({ remaining: 95 });
    await update(keyId, { credits: { refill: daily } });
    expect((await t.data("keys.verifyKey", { key })).credits).toBe(94);
    await update(keyId, { credits: { remaining: 2 } });
    const credits = [];
    for (let i = 0; i < 3; i++) credits.push((await t.data("keys.verifyKey", { key })).credits);
    expect(credits).toEqual([1, 0, 0]);
  });
});

describe("the next verification", () => {
  const codeOf = async (key: string, body: object = {}) => (await t.data("keys.verifyKey", { key, ...body })).code;
  test("change of `enabled` by updateKey applies to the next verification", async () => {
    const { keyId, key } = await create({});
    expect(await codeOf(key)).toBe("VALID");
    await update(keyId, { enabled: false });
    expect(await codeOf(key)).toBe("DISABLED");
    await update(keyId, { enabled: true });
    expect(await codeOf(key)).toBe("VALID");
  });

  test("updateKey with an expiry in the past applies to the next verification", async () => {
    const { keyId, key } = await create({});
    expect(await codeOf(key)).toBe("VALID");
    await update(keyId, { expires: 0 });
    expect(await codeOf(key)).toBe("EXPIRED");
  });

  test("change of roles, permissions, limits and identity by updateKey applies to the next verification", async () => {
    const { keyId, key } = await create({});
    expect(await codeOf(key, { permissions: "role.read" })).toBe("INSUFFICIENT_PERMISSIONS");
    await update(keyId, {
      roles: ["viewer"],
      permissions: ["x.read"],
      ratelimits: [{ ...limit, limit: 1 }],
      externalId: "seen",
    });
    const verified = await t.data("keys.verifyKey", { key, permissions: "role.read AND x.read" });
    expect(verified).toMatchObject({
      code: "VALID",
      roles: ["viewer"],
      permissions: ["role.read", "x.read"],
      identity: { externalId: "seen" },
    });
    expect(await codeOf(key)).toBe("RATE_LIMITED");
  });
});

describe("rejections", () => {
  test("updateKey checks for 404 (key), 403, 409, then 400 and 404 (role)", async () => {
    const { keyId } = await create();
    const reader = await t.rootKey(["api.*.read_key"]);
    const statusOf = async (body: object, rootKey?: string) =>
      (await t.call("keys.updateKey", body, rootKey === undefined ? {} : { rootKey })).status;
    expect(await statusOf({ keyId: "key_missing", roles: ["nobody"] }, reader)).toBe(404);
    expect(await statusOf({ keyId, roles: ["nobody"] }, reader)).toBe(403);
    expect(
      await statusOf({
        keyId,
        roles: ["nobody"],
        credits: { remaining: null, refill: { interval: "daily", amount: 1 } },
      }),
    ).toBe(400);
    const role = await t.call("keys.updateKey", {
      keyId,
      roles: ["editor", "nobody"],
      name: "changed",
      permissions: ["never.made"],
    });
    expect(role.body.error).toMatchObject({ status: 404, type: "https://docs.test/errors/role_not_found" });
    expect((await read(keyId)).name).toBe("before");
    const { rows } = await t.deps.db.query("select slug from permissions where slug = 'never.made'");
    expect(rows).toEqual([]);
  });

  test.each([
    { body: { enabled: null }, status: 400 },
    { body: { roles: null }, status: 400 },
    { body: { permissions: null }, status: 400 },
    { body: { name: "" }, status: 400 },
    { body: { roles: ["r".repeat(100)] }, status: 404 },
    { body: { roles: ["r".repeat(101)] }, status: 400 },
    { body: { permissions: ["ab"] }, status: 400 },
    { body: { permissions: ["abc"] }, status: 200 },
    { body: { permissions: ["s".repeat(100)] }, status: 200 },
    { body: { permissions: ["s".repeat(101)] }, status: 400 },
    { body: { expires: 4_102_444_800_001 }, status: 400 },
    { body: { prefix: "abc" }, status: 400 },
    { body: { ratelimits: Array.from({ length: 51 }, (_, i) => ({ ...limit, name: `limit${i}` })) }, status: 400 },
  ])("updateKey responds as documented to %j", async ({ body, status }) => {
    const { keyId } = await create({});
    expect((await t.call("keys.updateKey", { keyId, ...body })).status).toBe(status);
  });

  test("updateKey of a managed key is allowed only for its manager", async () => {
    const headers = { "Postern-Manager": "prod/Key/shop/managed" };
    const { keyId } = await t.data("keys.createKey", { apiId, name: "m" }, { headers });
    const direct = await t.call("keys.updateKey", { keyId, enabled: false });
    expect(direct.body.error).toMatchObject({ status: 409, type: "https://docs.test/errors/managed_by_manifest" });
    expect((await t.call("keys.deleteKey", { keyId })).status).toBe(409);
    expect((await t.call("keys.updateKey", { keyId, enabled: false }, { headers })).status).toBe(200);
    expect(
      (await t.call("keys.deleteKey", { keyId }, { headers: { ...headers, "Postern-Release": "true" } })).status,
    ).toBe(200);
    expect((await t.call("keys.updateKey", { keyId, enabled: true })).status).toBe(200);
  });
});

test("concurrent updateKey calls that change different fields lose no change", async () => {
  const { keyId } = await create({});
  await Promise.all([
    update(keyId, { name: "n" }),
    update(keyId, { meta: { m: 1 } }),
    update(keyId, { expires: 4_000_000_000_000 }),
    update(keyId, { credits: { remaining: 9 } }),
    update(keyId, { permissions: ["p.read"] }),
    update(keyId, { externalId: "all_at_once" }),
  ]);
  expect(await read(keyId)).toMatchObject({
    name: "n",
    meta: { m: 1 },
    expires: 4_000_000_000_000,
    credits: { remaining: 9 },
    permissions: ["p.read"],
    identity: { externalId: "all_at_once" },
  });
});

test("updateKey writes audit entries for the key, its API and created objects under one correlation id", async () => {
  const workspace = await t.makeWorkspace();
  const as = { rootKey: workspace.rootKey };
  const { apiId: own } = await t.data("apis.createApi", { name: "abc" }, as);
  const { keyId } = await t.data("keys.createKey", { apiId: own }, as);
  const before = (await t.audit(workspace.id)).length;
  await t.data("keys.updateKey", { keyId, permissions: ["new.slug"], externalId: "newcomer" }, as);
  const audit = (await t.audit(workspace.id)).slice(before);
  expect(audit.map(({ event }) => event)).toEqual(["identity.create", "key.update", "permission.create"]);
  expect(new Set(audit.map(({ correlation_id }) => correlation_id)).size).toBe(1);
  expect(audit[1]?.targets).toMatchObject([
    { type: "key", id: keyId },
    { type: "api", id: own },
  ]);
});
