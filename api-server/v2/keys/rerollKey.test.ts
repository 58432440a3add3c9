import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let t: TestApp;
let apiId: string;
/** One that keeps encrypted copies, and has defaults of its own. */
let otherApiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
  ({ apiId: otherApiId } = await t.data("apis.createApi", { name: "recoverable" }));
  await t.deps.db.query(
    "update apis set key_encryption = true, default_prefix = 'dflt', default_byte_length = 32 where id = $1",
    [otherApiId],
  );
});
afterAll(() => t.close());

const create = (body: object = {}) => t.data("keys.createKey", { apiId, ...body });
const reroll = (keyId: string, expiration = DAY_MS) => t.data("keys.rerollKey", { keyId, expiration });
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const verify = (key: string, body: object = {}) => t.data("keys.verifyKey", { key, ...body });

describe("the successor", () => {
  test("rerolled key has a new id, secret and creation time, and keeps all other settings", async () => {
    await t.data("permissions.createRole", { name: "editor", permissions: ["documents.write"] });
    const { keyId, key } = await create({
      prefix: "prod_eu",
      name: "Billing",
      externalId: "user_1",
      meta: { plan: "pro", nested: { list: [1, null] } },
      permissions: ["documents.read", "documents.list"],
      roles: ["editor"],
      expires: 4_102_444_800_000,
      credits: { remaining: 10, refill: { interval: "monthly", amount: 5, refillDay: 31 } },
      ratelimits: [
        { name: "requests", limit: 10, duration: 3_600_000, autoApply: true },
        { name: "tokens", limit: 20, duration: 7_200_000, autoApply: false },
      ],
      enabled: false,
    });
    await t.data("keys.updateKey", { keyId, enabled: false });
    const old = await read(keyId);
    const made = await reroll(keyId);
    expect(Object.keys(made).sort()).toEqual(["key", "keyId"]);
    expect(made.keyId).not.toBe(keyId);
    expect(made.key).not.toBe(key);
    expect(made.key).toMatch(/^prod_eu_[1-9A-HJ-NP-Za-km-z]{16,22}$/);

    const { createdAt, updatedAt, ratelimits, ...rest } = old;
    const shown = await read(made.keyId);
    expect(shown).toEqual({
      ...rest,
      keyId: made.keyId,
      start: made.key.slice(0, "prod_eu_".length + 4),
      createdAt: expect.any(Number),
      ratelimits: ratelimits.map((limit: object) => ({ ...limit, id: expect.stringMatching(/^rl_/) })),
    });
    expect(shown.createdAt).toBeGreaterThanOrEqual(createdAt);
    expect(updatedAt).toBeDefined();
    const idsOf = (limits: { id: string }[]) => limits.map(({ id }) => id);
    expect(idsOf(shown.ratelimits)).not.toEqual(idsOf(ratelimits));
  });

  test("successor of a key without settings has no settings", async () => {
    const { keyId } = await create();
    const made = await reroll(keyId);
    expect(made.key).toMatch(/^[1-9A-HJ-NP-Za-km-z]{16,22}$/);
    expect(await read(made.keyId)).toEqual({
      keyId: made.keyId,
      start: made.key.slice(0, 4),
      enabled: true,
      createdAt: expect.any(Number),
    });
  });

  test("rerolled key starts with the credits of the old key and then spends only its own", async () => {
    const { keyId, key } = await create({ credits: { remaining: 10 } });
    await verify(key, { credits: { cost: 3 } });
    const made = await reroll(keyId);
    expect(await verify(made.key, { credits: { cost: 2 } })).toMatchObject({ code: "VALID", credits: 5 });
    expect(await verify(key)).toMatchObject({ code: "VALID", credits: 6 });
    expect((await read(keyId)).credits.remaining).toBe(6);
    expect((await read(made.keyId)).credits.remaining).toBe(5);
  });

  test("successor of a rerolled key gets a refill that the old key has not received yet", async () => {
    const { keyId } = await create({ credits: { remaining: 1, refill: { interval: "daily", amount: 5 } } });
    await t.deps.db.query("update key_credits set last_refill_on = '2020-01-01' where key_id = $1", [keyId]);
    const made = await reroll(keyId);
    const { rows } = await t.deps.db.query("select last_refill_on from key_credits where key_id = $1", [made.keyId]);
    expect(rows).toEqual([{ last_refill_on: "2020-01-01" }]);
  });

  test("rerolled key starts with empty rate limit counters", async () => {
    const ratelimits = [{ name: "requests", limit: 1, duration: 3_600_000, autoApply: true }];
    const { keyId, key } = await create({ ratelimits });
    await verify(key);
    expect((await verify(key)).code).toBe("RATE_LIMITED");
    const made = await reroll(keyId);
    expect((await verify(made.key)).code).toBe("VALID");
  });

  test("successor has the live identity of the rerolled key, with the identity's meta and limits", async () => {
    const ratelimits = [{ name: "shared", limit: 2, duration: 3_600_000, autoApply: true }];
    const { identityId } = await t.data("identities.createIdentity", { externalId: "sharing", ratelimits });
    const { keyId, key } = await create({ externalId: "sharing" });
    const made = await reroll(keyId);
    expect((await read(made.keyId)).identity.id).toBe(identityId);
    const codes = [await verify(key), await verify(made.key), await verify(made.key)].map(({ code }) => code);
    expect(codes).toEqual(["VALID", "VALID", "RATE_LIMITED"]);

    await t.deps.db.query("update identities set deleted_at = 1 where id = $1", [identityId]);
    const orphan = await reroll(keyId);
    const { rows } = await t.deps.db.query("select identity_id from keys where id = $1", [orphan.keyId]);
    expect(rows).toEqual([{ identity_id: null }]);
  });

  test("rerolled key uses the API's default prefix if none is given, and always the API's default length", async () => {
    const { keyId, key } = await create({ apiId: otherApiId, byteLength: 16 });
    expect(key).toMatch(/^dflt_/);
    await t.deps.db.query("update keys set start = '3Ab9' where id = $1", [keyId]);
    expect((await reroll(keyId)).key).toMatch(/^dflt_[1-9A-HJ-NP-Za-km-z]{40,44}$/);
    const { keyId: own } = await create({ apiId: otherApiId, prefix: "my_own" });
    expect((await reroll(own)).key).toMatch(/^my_own_[1-9A-HJ-NP-Za-km-z]{40,44}$/);
  });

  test("successor of a rerolled managed key is unmanaged", async () => {
    const headers = { "Postern-Manager": "prod/Key/shop/billing" };
    const { keyId } = await t.data("keys.createKey", { apiId, name: "managed" }, { headers });
    const made = await reroll(keyId);
    const managerOf = async (id: string) => (await t.data("managed.getObject", { kind: "key", id })).manager;
    expect(await managerOf(keyId)).toBe("prod/Key/shop/billing");
    expect(await managerOf(made.keyId)).toBeUndefined();
  });
});

describe("the old key", () => {
  test("rerollKey with expiration 0 expires the old key immediately", async () => {
    const { keyId, key } = await create();
    expect((await verify(key)).code).toBe("VALID");
    const { key: successor } = await reroll(keyId, 0);
    t.advance(1);
    expect((await verify(key)).code).toBe("EXPIRED");
    expect((await verify(successor)).code).toBe("VALID");
  });

  test("rerollKey expires the old key at the next full minute after the period", async () => {
    const { keyId, key } = await create({ name: "old", credits: { remaining: 5 } });
    const before = await read(keyId);
    const earliest = t.deps.nowMs() + 90_000;
    await reroll(keyId, 90_000);
    const latest = t.deps.nowMs() + 90_000;
    const { expires, ...rest } = await read(keyId);
    expect(rest).toEqual(before);
    expect(expires % MINUTE_MS).toBe(0);
    expect(expires).toBeGreaterThanOrEqual(earliest);
    expect(expires).toBeLessThan(latest + MINUTE_MS);
    expect(await verify(key)).toMatchObject({ code: "VALID", expires });
  });

  test.each([
    { name: "in the past", expires: 1000 },
    { name: "sooner", expires: Date.now() + 30_000 },
  ])("rerollKey of a key that expires $name keeps that expiry for both keys", async ({ expires }) => {
    const { keyId } = await create({ expires });
    const made = await reroll(keyId, DAY_MS);
    expect((await read(keyId)).expires).toBe(expires);
    expect((await read(made.keyId)).expires).toBe(expires);
  });

  test("rerollKey shortens the expiry of the old key but not of the successor", async () => {
    const { keyId } = await create({ expires: 4_102_444_800_000 });
    const made = await reroll(keyId, MINUTE_MS);
    expect((await read(keyId)).expires).toBeLessThan(t.deps.nowMs() + 3 * MINUTE_MS);
    expect((await read(made.keyId)).expires).toBe(4_102_444_800_000);
  });

  test("each of several concurrent rerollKey calls creates a successor", async () => {
    const { keyId } = await create({ credits: { remaining: 3 } });
    const made = await Promise.all(Array.from({ length: 8 }, () => reroll(keyId)));
    expect(new Set(made.flatMap((one) => [one.keyId, one.key])).size).toBe(16);
    for (const one of made) expect((await read(one.keyId)).credits.remaining).toBe(3);
  });
});

describe("a recoverable key", () => {
  test("rerolled recoverable key and its original are both recoverable", async () => {
    const { keyId, key } = await create({ apiId: otherApiId, recoverable: true });
    const made = await reroll(keyId);
    const reveal = async (id: string) => (await t.data("keys.getKey", { keyId: id, decrypt: true })).plaintext;
    expect(await reveal(made.keyId)).toBe(made.key);
    expect(await reveal(keyId)).toBe(key);
  });

  test("rerollKey of a recoverable key requires encrypt_key and enabled encryption", async () => {
    const { keyId } = await create({ apiId: otherApiId, recoverable: true });
    const { keyId: plain } = await create({ apiId: otherApiId });
    const creating = await t.rootKey(["api.*.create_key"]);
    const encrypting = await t.rootKey(["api.*.encrypt_key"]);
    const ask = async (id: string, rootKey?: string) => {
      const { status, body } = await t.call(
        "keys.rerollKey",
        { keyId: id, expiration: 0 },
        rootKey === undefined ? {} : { rootKey },
      );
      return [status, body.error?.detail];
    };
    const either = (action: string) => expect.stringContaining(`api.*.${action} or api.${otherApiId}.${action}`);
    expect(await ask(keyId, encrypting)).toEqual([403, either("create_key")]);
    expect(await ask(keyId, creating)).toEqual([403, either("encrypt_key")]);
    await t.deps.db.query("update apis set key_encryption = false where id = $1", [otherApiId]);
    expect(await ask(keyId, creating)).toEqual([403, either("encrypt_key")]);
    expect(await ask(keyId)).toEqual([412, expect.stringContaining("not enabled")]);
    expect(await ask(plain, creating)).toEqual([200, undefined]);
    expect(await read(keyId)).not.toHaveProperty("expires");
    await t.deps.db.query("update apis set key_encryption = true where id = $1", [otherApiId]);
  });
});

test("rerollKey checks for 404 before 403", async () => {
  const { keyId } = await create();
  const rootKey = await t.rootKey(["api.*.read_key"]);
  const statusOf = async (id: string) =>
    (await t.call("keys.rerollKey", { keyId: id, expiration: 0 }, { rootKey })).status;
  expect(await statusOf("key_missing")).toBe(404);
  expect(await statusOf(keyId)).toBe(403);
  await t.data("keys.deleteKey", { keyId });
  expect(await statusOf(keyId)).toBe(404);
});

test.each([
  { name: "no expiration", body: { expiration: undefined }, status: 400 },
  { name: "-1", body: { expiration: -1 }, status: 400 },
  { name: "half a millisecond", body: { expiration: 0.5 }, status: 400 },
  { name: "null", body: { expiration: null }, status: 400 },
  { name: "the longest", body: { expiration: 4_102_444_800_000 }, status: 200 },
  { name: "longer than that", body: { expiration: 4_102_444_800_001 }, status: 400 },
  { name: "a member that is not known", body: { nope: 1 }, status: 200 },
])("rerollKey with $name returns $status", async ({ body, status }) => {
  const { keyId } = await create();
  expect((await t.call("keys.rerollKey", { keyId, expiration: 0, ...body })).status).toBe(status);
});

test("rerollKey writes one audit entry with both keys and the API", async () => {
  const workspace = await t.makeWorkspace();
  const as = { rootKey: workspace.rootKey };
  const { apiId: own } = await t.data("apis.createApi", { name: "audited" }, as);
  const { keyId } = await t.data("keys.createKey", { apiId: own, name: "Billing", permissions: ["some.slug"] }, as);
  const before = (await t.audit(workspace.id)).length;
  const made = await t.data("keys.rerollKey", { keyId, expiration: 0 }, as);
  const rows = (await t.audit(workspace.id)).slice(before);
  expect(rows).toMatchObject([
    {
      event: "key.reroll",
      targets: [
        { type: "key", id: made.keyId, name: "Billing" },
        { type: "key", id: keyId, name: "Billing" },
        { type: "api", id: own, name: "audited" },
      ],
    },
  ]);
  expect(JSON.stringify(rows)).not.toContain(made.key);
});
