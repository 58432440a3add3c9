import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { buildTestApp, type CallOptions, type TestApp } from "../../test/app.ts";

const HOUR_MS = 3_600_000;

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const create = (body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("v1/keys.createKey", { apiId, ...body });
const update = (keyId: string, body: object) => t.data("v1/keys.updateKey", { keyId, ...body });
const read = (keyId: string, body: object = {}) => t.data("v1/keys.getKey", { keyId, ...body });
const readV2 = (keyId: string) => t.data("keys.getKey", { keyId });
/** Status, code and message. */
const refused = async (path: string, body: object, options?: CallOptions) => {
  const { status, body: reply } = await t.call(path, body, options);
  return `${status} ${reply.error?.code} ${reply.error?.message}`;
};
/** What the audit log got, without the rows of before. */
async function audited(work: () => Promise<unknown>): Promise<string[]> {
  const before = (await t.audit()).length;
  await work();
  const rows = await t.audit();
  return rows
    .slice(before)
    .map(({ event }) => event)
    .sort();
}

describe("createKey", () => {
  test("v1 createKey with only an API returns the key and its id", async () => {
    const made = await create();
    expect(made).toEqual({ keyId: expect.stringMatching(/^key_/), key: expect.any(String) });
    expect(await read(made.keyId)).toEqual({
      id: made.keyId,
      start: made.key.slice(0, 4),
      workspaceId: t.workspace.id,
      apiId,
      createdAt: expect.any(Number),
      roles: [],
      permissions: [],
      enabled: true,
    });
  });

  test("v1 createKey stores all given fields, and v2 returns them", async () => {
    const body = {
      prefix: "prod",
      name: "Ünï ✓",
      byteLength: 32,
      externalId: "Zoë O'Neill / 漢字",
      ownerId: "not this one",
      meta: { plan: "pro", deep: { list: [null, 1] } },
      roles: ["Editor", "EDITOR"],
      permissions: ["documents.read", "Documents.READ", "a.*"],
      expires: 4_000_000_000_000,
      remaining: 7,
      refill: { interval: "monthly", amount: 5 },
      ratelimit: { type: "fast", async: true, limit: 3, refillRate: 9, refillInterval: 1, duration: HOUR_MS },
      enabled: false,
      environment: "staging",
    };
    const { keyId, key } = await create(body);
    expect(key).toMatch(/^prod_/);
    const shown = await read(keyId);
    expect(shown).toEqual({
      id: keyId,
      start: key.slice(0, 9),
      workspaceId: t.workspace.id,
      apiId,
      name: body.name,
      ownerId: body.externalId,
      meta: body.meta,
      createdAt: expect.any(Number),
      expires: body.expires,
      remaining: 7,
      refill: { interval: "monthly", amount: 5, refillDay: 1, lastRefillAt: shown.createdAt },
      ratelimit: { async: false, limit: 3, duration: HOUR_MS, refillRate: 3, refillInterval: HOUR_MS },
      roles: ["Editor"],
      permissions: ["a.*", "documents.read"],
      enabled: false,
      identity: { id: expect.stringMatching(/^id_/), externalId: body.externalId, meta: {} },
    });
    expect(await readV2(keyId)).toMatchObject({
      credits: { remaining: 7, refill: { interval: "monthly", amount: 5, refillDay: 1 } },
      ratelimits: [{ name: "default", limit: 3, duration: HOUR_MS, autoApply: true }],
      identity: { externalId: body.externalId },
      roles: ["Editor"],
    });
    const who = await t.data("v1/keys.whoami", { key });
    expect(who).toEqual({
      id: keyId,
      name: body.name,
      remaining: 7,
      identity: { id: shown.identity.id, externalId: body.externalId },
      meta: body.meta,
      createdAt: shown.createdAt,
      enabled: false,
      environment: "staging",
    });
  });

  test.each([
    { name: "ownerId alone is the owner", body: { ownerId: "own" }, owner: "own" },
    { name: "externalId wins", body: { ownerId: "own", externalId: "ext" }, owner: "ext" },
    { name: "an empty externalId counts as left out", body: { ownerId: "own", externalId: "" }, owner: "own" },
    { name: "an empty owner is none", body: { ownerId: "" }, owner: undefined },
    { name: "255 characters", body: { externalId: "ü".repeat(255) }, owner: "ü".repeat(255) },
  ])("v1 createKey assigns the owner: $name", async ({ body, owner }) => {
    const shown = await read((await create(body)).keyId);
    expect([shown.ownerId, shown.identity?.externalId]).toEqual([owner, owner]);
  });

  test.each([
    { name: "no API", body: { apiId: undefined }, place: "apiId" },
    { name: "remaining 0", body: { remaining: 0 }, place: "remaining" },
    { name: "a refill without remaining", body: { refill: { interval: "daily", amount: 1 } }, place: "refill" },
    {
      name: "a day with a daily refill",
      body: { remaining: 1, refill: { interval: "daily", amount: 1, refillDay: 3 } },
      place: "refill.refillDay",
    },
    {
      name: "refillDay 32",
      body: { remaining: 1, refill: { interval: "monthly", amount: 1, refillDay: 32 } },
      place: "refill.refillDay",
    },
    { name: "amount 0", body: { remaining: 1, refill: { interval: "daily", amount: 0 } }, place: "refill.amount" },
    { name: "a limit without a window", body: { ratelimit: { limit: 1 } }, place: "ratelimit.duration" },
    { name: "a window of 999 ms", body: { ratelimit: { limit: 1, duration: 999 } }, place: "ratelimit.duration" },
    {
      name: "a refillInterval of 999 ms",
      body: { ratelimit: { limit: 1, refillInterval: 999 } },
      place: "ratelimit.refillInterval",
    },
    { name: "a limit of 0", body: { ratelimit: { limit: 0, duration: 1000 } }, place: "ratelimit.limit" },
    { name: "a prefix of 17", body: { prefix: "p".repeat(17) }, place: "prefix" },
    { name: "15 bytes", body: { byteLength: 15 }, place: "byteLength" },
    { name: "256 bytes", body: { byteLength: 256 }, place: "byteLength" },
    { name: "a name of 256", body: { name: "n".repeat(256) }, place: "name" },
    { name: "an owner of 256", body: { ownerId: "o".repeat(256) }, place: "ownerId" },
    { name: "an environment of 257", body: { environment: "e".repeat(257) }, place: "environment" },
    { name: "an expiry after 2099", body: { expires: 4_102_444_800_001 }, place: "expires" },
    { name: "an empty role", body: { roles: [""] }, place: "roles.0" },
    { name: "101 roles", body: { roles: Array.from({ length: 101 }, (_, i) => `r${i}`) }, place: "roles" },
    { name: "a slug of 129", body: { permissions: ["s".repeat(129)] }, place: "permissions.0" },
    {
      name: "1001 permissions",
      body: { permissions: Array.from({ length: 1001 }, (_, i) => `p${i}`) },
      place: "permissions",
    },
    { name: "U+0000", body: { ownerId: "a\u0000b" }, place: "ownerId" },
    { name: "half a surrogate pair", body: { meta: { a: "\ud800" } }, place: "meta" },
  ])("v1 createKey with $name gets 400 before authentication", async ({ body, place }) => {
    const text = await refused("v1/keys.createKey", { apiId, ...body }, { rootKey: null });
    expect(text).toMatch(/^400 BAD_REQUEST /);
    expect(text).toContain(`${place}`);
  });

  test("v1 createKey accepts minimum and maximum values", async () => {
    const permissions = Array.from({ length: 1000 }, (_, i) => `bulk.${i}`);
    const roles = Array.from({ length: 100 }, (_, i) => `bulk ${i}`);
    const { keyId } = await create({
      permissions,
      roles,
      prefix: "p".repeat(16),
      byteLength: 255,
      remaining: 1,
      environment: "e".repeat(256),
      name: "",
      expires: 0,
      ratelimit: { limit: 1, refillInterval: 1000 },
    });
    const shown = await read(keyId);
    expect(shown).toMatchObject({ expires: 0, remaining: 1, ratelimit: { limit: 1, duration: 1000 } });
    expect(shown).not.toHaveProperty("name");
    expect([shown.permissions.length, shown.roles.length]).toEqual([1000, 100]);
  });

  test("v1 createKey checks for 403 before 404, and requires create permissions only for new objects", async () => {
    const only = await t.rootKey(["api.*.create_key"]);
    const stranger = await t.rootKey(["api.*.read_key"]);
    expect(await refused("v1/keys.createKey", { apiId: "api_none" }, { rootKey: stranger })).toMatch(/^403 INSUFF/);
    expect(await refused("v1/keys.createKey", { apiId: "api_none" }, { rootKey: only })).toMatch(/^404 NOT_FOUND /);
    const other = await t.makeWorkspace();
    const theirs = await t.data("apis.createApi", { name: "theirs" }, { rootKey: other.rootKey });
    expect(await refused("v1/keys.createKey", { apiId: theirs.apiId }, { rootKey: only })).toMatch(/^404 NOT_FOUND /);

    const roles = ["Exists"];
    const permissions = ["exists.already"];
    await create({ roles, permissions });
    const body = { apiId, roles, permissions };
    expect((await t.call("v1/keys.createKey", body, { rootKey: only })).status).toBe(200);
    const keysBefore = (await t.deps.db.query("select count(*) from keys")).rows[0].count;
    for (const [more, required] of [
      [{ roles: ["New here"] }, "rbac.*.create_role"],
      [{ permissions: ["new.here"] }, "rbac.*.create_permission"],
    ] as const) {
      const text = await refused("v1/keys.createKey", { ...body, ...more }, { rootKey: only });
      expect(text).toMatch(/^403 INSUFFICIENT_PERMISSIONS/);
      expect(text).toContain(required);
    }
    expect((await t.deps.db.query("select count(*) from keys")).rows[0].count).toBe(keysBefore);
    expect((await t.deps.db.query("select from roles where name = 'New here'")).rowCount).toBe(0);
  });

  test("v1 createKey writes one audit entry per created and linked object", async () => {
    const body = { externalId: "audited", roles: ["Audited"], permissions: ["audited.read"] };
    const connected = ["authorization.connect_permission_and_key", "authorization.connect_role_and_key"];
    expect(await audited(() => create(body))).toEqual([
      ...connected,
      "identity.create",
      "key.create",
      "permission.create",
      "role.create",
    ]);
    expect(await audited(() => create(body))).toEqual([...connected, "key.create"]);
  });

  test("v1 createKey stores a recoverable key, which getKey decrypts for callers with permission", async () => {
    expect(await refused("v1/keys.createKey", { apiId, recoverable: true })).toMatch(/^412 PRECONDITION_FAILED/);
    const { apiId: vaulted } = await t.data("apis.createApi", { name: "vaulted" });
    await t.deps.db.query("update apis set key_encryption = true where id = $1", [vaulted]);
    const { keyId, key } = await create({ apiId: vaulted, recoverable: true });
    expect(await read(keyId, { decrypt: true })).toMatchObject({ plaintext: key });
    expect(await read(keyId)).not.toHaveProperty("plaintext");
    expect(await read((await create()).keyId, { decrypt: true })).not.toHaveProperty("plaintext");
    const reader = await t.rootKey(["api.*.read_key"]);
    expect(await refused("v1/keys.getKey", { keyId, decrypt: true }, { rootKey: reader })).toMatch(/^403 UNAUTHORIZED/);
    expect((await t.deps.db.query("select * from keys where id = $1", [keyId])).rows[0]).not.toContain(key);
  });
});

describe("updateKey", () => {
  const full = {
    name: "before",
    externalId: "owner_before",
    meta: { a: 1 },
    expires: 4_000_000_000_000,
    remaining: 10,
    refill: { interval: "daily", amount: 5 },
    ratelimit: { limit: 10, duration: 60_000 },
    permissions: ["direct.read"],
    roles: ["Kept"],
    environment: "env",
  };

  test("v1 updateKey without fields changes only updatedAt", async () => {
    const { keyId } = await create(full);
    const before = await read(keyId);
    expect(await update(keyId, {})).toEqual({});
    expect(await read(keyId)).toEqual({ ...before, updatedAt: expect.any(Number) });
  });

  const limit = { async: false, limit: 3, duration: 5000, refillRate: 3, refillInterval: 5000 };
  test.each([
    { name: "name", body: { name: "after" }, change: { name: "after" } },
    { name: "name removed", body: { name: null }, change: { name: undefined } },
    { name: "name emptied", body: { name: "" }, change: { name: undefined } },
    { name: "meta", body: { meta: { b: [] } }, change: { meta: { b: [] } } },
    { name: "meta removed", body: { meta: null }, change: { meta: undefined } },
    { name: "expires", body: { expires: 0 }, change: { expires: 0 } },
    { name: "expires removed", body: { expires: null }, change: { expires: undefined } },
    { name: "enabled", body: { enabled: false }, change: { enabled: false } },
    { name: "owner removed", body: { ownerId: null }, change: { ownerId: undefined, identity: undefined } },
    { name: "remaining 0", body: { remaining: 0 }, change: { remaining: 0 } },
    {
      name: "unlimited, and the refill goes",
      body: { remaining: null },
      change: { remaining: undefined, refill: undefined },
    },
    { name: "refill removed", body: { refill: null }, change: { refill: undefined } },
    { name: "the limit", body: { ratelimit: { limit: 3, refillInterval: 5000 } }, change: { ratelimit: limit } },
    { name: "the limit removed", body: { ratelimit: null }, change: { ratelimit: undefined } },
  ])("v1 updateKey changes only $name", async ({ body, change }) => {
    const { keyId } = await create(full);
    const before = await read(keyId);
    await update(keyId, body);
    const requested = { ...before, ...change, updatedAt: expect.any(Number) };
    expect(await read(keyId)).toEqual(omitUndefined(requested));
  });

  const omitUndefined = (object: object) =>
    Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

  test("v1 updateKey links an existing or a new identity, and externalId takes precedence over ownerId", async () => {
    const { keyId } = await create(full);
    await update(keyId, { ownerId: "owner_after" });
    expect(await read(keyId)).toMatchObject({ ownerId: "owner_after", identity: { externalId: "owner_after" } });
    await update(keyId, { ownerId: "ignored", externalId: null });
    const shown = await read(keyId);
    expect([shown.ownerId, shown.identity]).toEqual([undefined, undefined]);
    // The identities themselves stay.
    expect((await t.call("identities.getIdentity", { identity: "owner_after" })).status).toBe(200);
  });

  test("v1 updateKey that changes one limit keeps this limit's id and all other limits", async () => {
    const ratelimits = [
      { name: "tokens", limit: 5, duration: 60_000, autoApply: false },
      { name: "default", limit: 9, duration: 60_000, autoApply: false },
    ];
    const { keyId } = await t.data("keys.createKey", { apiId, ratelimits });
    const [before] = (await readV2(keyId)).ratelimits;
    await update(keyId, { ratelimit: { limit: 4, duration: 1000 } });
    const changed = (await readV2(keyId)).ratelimits;
    expect(changed).toEqual([
      { id: before.id, name: "default", limit: 4, duration: 1000, autoApply: true },
      expect.objectContaining(ratelimits[0]),
    ]);
    await update(keyId, { ratelimit: null });
    expect((await readV2(keyId)).ratelimits).toEqual([expect.objectContaining({ name: "tokens" })]);
    expect(await read(keyId)).not.toHaveProperty("ratelimit");
  });

  test("v1 updateKey replaces roles and permissions, removes all of them for [], and audits the links", async () => {
    const { keyId, key } = await create(full);
    const links = {
      roles: [{ name: "Made by update", create: true }],
      permissions: [{ name: "new.one", create: true }],
    };
    expect(await audited(() => update(keyId, links))).toEqual([
      "authorization.connect_permission_and_key",
      "authorization.connect_role_and_key",
      "authorization.disconnect_permission_and_key",
      "authorization.disconnect_role_and_key",
      "key.update",
      "permission.create",
      "role.create",
    ]);
    const verified = await t.data("v1/keys.verifyKey", { key });
    expect(verified).toMatchObject({ roles: ["Made by update"], permissions: ["new.one"] });
    expect(await audited(() => update(keyId, { roles: [] }))).toEqual([
      "authorization.disconnect_role_and_key",
      "key.update",
    ]);
    await update(keyId, { permissions: [] });
    expect(await t.data("v1/keys.verifyKey", { key })).toMatchObject({ roles: [], permissions: [] });
    // One that is missing undoes the whole call.
    const bad = { name: "renamed", permissions: [{ name: "never.made" }] };
    expect(await refused("v1/keys.updateKey", { keyId, ...bad })).toMatch(/^404 NOT_FOUND/);
    expect(await read(keyId)).toMatchObject({ name: "before" });
  });

  test("v1 updateKey accepts 50 limits and rejects more with 400", async () => {
    const named = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ name: `limit_${i}`, limit: 1, duration: 1000 }));
    const { keyId } = await t.data("keys.createKey", { apiId, ratelimits: named(50) });
    const body = { ratelimit: { limit: 1, duration: 1000 } };
    expect(await refused("v1/keys.updateKey", { keyId, ...body })).toMatch(/^400 BAD_REQUEST ratelimit: /);
    await t.data("keys.updateKey", { keyId, ratelimits: named(49) });
    expect(await update(keyId, body)).toEqual({});
  });

  test.each([
    { body: { remaining: null, refill: { interval: "daily", amount: 1 } }, place: "refill: " },
    { body: { refill: { interval: "daily", amount: 1, refillDay: 1 } }, place: "refill.refillDay: " },
    { body: { ratelimit: { limit: 1, duration: 999 } }, place: "ratelimit.duration: " },
    { body: { remaining: -1 }, place: "remaining: " },
    { body: { enabled: null }, place: "enabled: " },
  ])("v1 updateKey with $body gets 400 before authentication", async ({ body, place }) => {
    const text = await refused("v1/keys.updateKey", { keyId: "key_none", ...body }, { rootKey: null });
    expect(text).toContain(`400 BAD_REQUEST ${place}`);
  });

  test("v1 updateKey rejects a refill of an unlimited key, and refills monthly on day 1 by default", async () => {
    const { keyId } = await create();
    const monthly = { refill: { interval: "monthly", amount: 1 } };
    expect(await refused("v1/keys.updateKey", { keyId, ...monthly })).toMatch(/^400 BAD_REQUEST refill: /);
    await update(keyId, { remaining: 1, ...monthly });
    expect(await read(keyId)).toMatchObject({ refill: { interval: "monthly", refillDay: 1 } });
    await update(keyId, { refill: { interval: "monthly", amount: 1, refillDay: 17 } });
    expect(await read(keyId)).toMatchObject({ refill: { interval: "monthly", refillDay: 17 } });
    await update(keyId, { refill: { interval: "daily", amount: 2 } });
    expect(await read(keyId)).toMatchObject({ refill: { interval: "daily", amount: 2, refillDay: null } });
  });

  test("v1 updateKey checks for 404 before 403, and returns 404 for a key of another workspace", async () => {
    const other = await t.makeWorkspace();
    const { keyId } = await create();
    const weak = await t.rootKey(["api.*.read_api"]);
    for (const [path, body] of [
      ["v1/keys.updateKey", { name: "x" }],
      ["v1/keys.updateRemaining", { op: "set", value: 1 }],
      ["v1/keys.deleteKey", { permanent: true }],
      ["v1/keys.getKey", {}],
    ] as const) {
      expect(await refused(path, { keyId: "key_none", ...body }, { rootKey: weak })).toMatch(/^404 NOT_FOUND/);
      expect(await refused(path, { keyId, ...body }, { rootKey: weak })).toMatch(/^403 INSUFFICIENT_PERMISSIONS/);
      expect(await refused(path, { keyId, ...body }, { rootKey: other.rootKey })).toMatch(/^404 NOT_FOUND/);
    }
    expect(await read(keyId)).not.toHaveProperty("updatedAt");
  });

  test("v1 updateKey of a managed key gets 409 and names the manifest", async () => {
    const { keyId } = await create();
    await t.deps.db.query("update keys set manager = 'main/ApiKey/shop/orders' where id = $1", [keyId]);
    for (const [path, body] of [
      ["v1/keys.updateKey", { name: "x" }],
      ["v1/keys.deleteKey", {}],
    ] as const) {
      expect(await refused(path, { keyId, ...body })).toMatch(/^409 CONFLICT .*main\/ApiKey\/shop\/orders/);
    }
  });

  test("v1 updateKey writes one audit entry, plus one for a new identity", async () => {
    const { keyId } = await create();
    expect(await audited(() => update(keyId, { name: "n" }))).toEqual(["key.update"]);
    expect(await audited(() => update(keyId, { ownerId: "made_by_update" }))).toEqual([
      "identity.create",
      "key.update",
    ]);
  });
});

describe("updateRemaining", () => {
  test("v1 updateRemaining sets, adds and subtracts current credits, down to 0", async () => {
    const { keyId, key } = await create({ remaining: 5 });
    await t.data("v1/keys.verifyKey", { key });
    const change = async (op: string, value: number | null) =>
      (await t.data("v1/keys.updateRemaining", { keyId, op, value })).remaining;
    expect(await change("increment", 3)).toBe(7);
    expect(await change("decrement", 2)).toBe(5);
    expect(await change("decrement", 50)).toBe(0);
    expect((await t.data("v1/keys.verifyKey", { key })).code).toBe("USAGE_EXCEEDED");
    expect(await change("set", 2)).toBe(2);
    expect(await change("set", null)).toBeNull();
    expect((await t.data("v1/keys.verifyKey", { key })).remaining).toBeUndefined();
  });

  test.each([
    { body: { op: "increment", value: null }, place: "value" },
    { body: { op: "decrement", value: null }, place: "value" },
    { body: { op: "increment", value: 1 }, place: "op" },
    { body: { op: "set", value: -1 }, place: "value" },
    { body: { op: "set" }, place: "value" },
    { body: { op: "add", value: 1 }, place: "op" },
  ])("v1 updateRemaining with $body on an unlimited key gets 400", async ({ body, place }) => {
    const { keyId } = await create();
    const text = await refused("v1/keys.updateRemaining", { keyId, ...body });
    expect(text).toContain(`400 BAD_REQUEST ${place}: `);
  });

  test("concurrent v1 updateRemaining and verifications lose no credits", async () => {
    const { keyId, key } = await create({ remaining: 100 });
    const changes = Array.from({ length: 40 }, (_, i) =>
      i % 4 === 0
        ? t.data("v1/keys.updateRemaining", { keyId, op: "increment", value: 5 })
        : t.data(i % 2 === 0 ? "v1/keys.verifyKey" : "keys.verifyKey", { key }),
    );
    await Promise.all(changes);
    expect((await read(keyId)).remaining).toBe(100 + 10 * 5 - 30);
  });
});

describe("deleteKey", () => {
  test("v1 deleteKey soft-deletes a key, keeps its secret reserved, and returns 404 when repeated", async () => {
    const { keyId, key } = await create();
    expect(await audited(() => t.data("v1/keys.deleteKey", { keyId }))).toEqual(["key.delete"]);
    for (const [path, body] of [
      ["v1/keys.deleteKey", { keyId }],
      ["v1/keys.getKey", { keyId }],
      ["v1/keys.updateKey", { keyId }],
      ["v1/keys.updateRemaining", { keyId, op: "set", value: 1 }],
      ["v1/keys.whoami", { key }],
    ] as const) {
      expect(await refused(path, body)).toMatch(/^404 NOT_FOUND/);
    }
    expect((await t.data("v1/keys.verifyKey", { key })).code).toBe("NOT_FOUND");
    expect((await t.deps.db.query("select from keys where hash = $1", [hashKey(key)])).rowCount).toBe(1);
  });

  test("v1 deleteKey with `permanent` removes the key and frees its secret", async () => {
    const { keyId, key } = await create({ remaining: 5 });
    await t.data("v1/keys.deleteKey", { keyId, permanent: true });
    expect((await t.deps.db.query("select from keys where hash = $1", [hashKey(key)])).rowCount).toBe(0);
  });
});

test("v1 whoami consumes nothing, accepts disabled keys and rejects keys of other workspaces", async () => {
  const { keyId, key } = await create({ remaining: 1, enabled: false, expires: 1 });
  for (let i = 0; i < 2; i++) {
    expect(await t.data("v1/keys.whoami", { key })).toMatchObject({ id: keyId, remaining: 1, enabled: false });
  }
  const other = await t.makeWorkspace();
  expect(await refused("v1/keys.whoami", { key }, { rootKey: other.rootKey })).toMatch(/^404 NOT_FOUND/);
  expect(await refused("v1/keys.whoami", { key: t.workspace.rootKey })).toMatch(/^404 NOT_FOUND/);
});
