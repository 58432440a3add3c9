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

const create = (body: object = {}) => t.data("keys.createKey", { apiId, ...body });
const read = (keyId: string) => t.data("keys.getKey", { keyId });
const limit = { name: "requests", limit: 10, duration: 60_000, autoApply: true };
const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
/** How many rows of these tables a workspace has. */
const countRows = async (workspaceId: string): Promise<number> => {
  const { rows } = await t.deps.db.query<{ count: number }>(
    `select (select count(*) from keys where workspace_id = $1) + (select count(*) from identities where workspace_id = $1)
          + (select count(*) from permissions where workspace_id = $1) as count`,
    [workspaceId],
  );
  return rows[0]?.count ?? -1;
};

test("createKey with only an API creates a key of 16 random bytes in base58", async () => {
  const { keyId, key, ...rest } = await create();
  expect(rest).toEqual({});
  expect(keyId).toMatch(/^key_[a-zA-Z0-9]{16}$/);
  expect(key).toMatch(/^[1-9A-HJ-NP-Za-km-z]{16,22}$/);
  expect(await read(keyId)).toEqual({ keyId, start: key.slice(0, 4), enabled: true, createdAt: expect.any(Number) });
});

test("createKey stores only the hash of the key", async () => {
  const { keyId, key } = await create();
  const { rows } = await t.deps.db.query("select row_to_json(k)::text as row, hash from keys k where id = $1", [keyId]);
  expect(rows[0].hash).toBe(hashKey(key));
  expect(rows[0].row).not.toContain(key);
});

test("createKey stores all given fields", async () => {
  const body = {
    name: "Billing",
    prefix: "prod_eu",
    byteLength: 64,
    externalId: "user.1-a_b",
    meta: { plan: "pro", nested: { list: [1, null, "ü"] } },
    permissions: ["documents.write", "documents.read"],
    expires: 4_102_444_800_000,
    credits: { remaining: 0, refill: { interval: "daily", amount: 5 } },
    ratelimits: [limit],
    enabled: false,
  };
  await t.data("permissions.createRole", { name: "editor", permissions: ["documents.read", "extra"] });
  const { keyId, key } = await create({ ...body, roles: ["editor"] });
  expect(key).toMatch(/^prod_eu_[1-9A-HJ-NP-Za-km-z]{64,88}$/);
  expect(await read(keyId)).toEqual({
    keyId,
    start: key.slice(0, "prod_eu_".length + 4),
    enabled: false,
    createdAt: expect.any(Number),
    name: "Billing",
    meta: body.meta,
    expires: body.expires,
    permissions: ["documents.read", "documents.write", "extra"],
    roles: ["editor"],
    credits: body.credits,
    identity: { id: expect.stringMatching(/^id_/), externalId: "user.1-a_b" },
    ratelimits: [{ id: expect.stringMatching(/^rl_/), ...limit }],
  });
});

test.each([
  { size: "1 MiB", filler: 1_048_576 - 8, status: 200 },
  { size: "1 MiB and a byte", filler: 1_048_576 - 7, status: 400 },
])("createKey with meta of $size returns $status", async ({ filler, status }) => {
  const reply = await t.call("keys.createKey", { apiId, meta: { a: "x".repeat(filler) } });
  expect(reply.status).toBe(status);
  if (status === 400) expect(reply.body.error.errors[0].location).toBe("body.meta");
});

test("createKey keeps meta unchanged, whatever its member names", async () => {
  const meta = '{"__proto__":{"a":1},"constructor":2,"toString":null,"":[],"nested":{"__proto__":[true]}}';
  const reply = await t.call("keys.createKey", `{"apiId":"${apiId}","meta":${meta}}`);
  const shown = (await read(reply.body.data.keyId)).meta;
  const sorted = (value: object) => JSON.stringify(Object.entries(value).toSorted());
  expect(sorted(shown)).toBe(sorted(JSON.parse(meta)));
});

test("createKey never repeats an id or a key", async () => {
  const made = await Promise.all(many(20, () => create()));
  expect(new Set(made.flatMap(({ keyId, key }) => [keyId, key])).size).toBe(40);
});

test("createKey applies the API defaults unless the request overrides them", async () => {
  const { apiId: other } = await t.data("apis.createApi", { name: "defaults" });
  await t.deps.db.query("update apis set default_prefix = 'dflt', default_byte_length = 32 where id = $1", [other]);
  const { key } = await create({ apiId: other });
  expect(key).toMatch(/^dflt_.{40,44}$/);
  const { key: own } = await create({ apiId: other, prefix: "mine", byteLength: 16 });
  expect(own).toMatch(/^mine_.{16,22}$/);
});

describe("bounds", () => {
  test.each([
    { name: "an empty name", body: { name: "" }, status: 400 },
    { name: "a name of 255", body: { name: "n".repeat(255) }, status: 200 },
    { name: "a name of 256", body: { name: "n".repeat(256) }, status: 400 },
    { name: "a prefix of 16", body: { prefix: "p".repeat(16) }, status: 200 },
    { name: "a prefix of 17", body: { prefix: "p".repeat(17) }, status: 400 },
    { name: "a prefix with a dash", body: { prefix: "a-b" }, status: 400 },
    { name: "an empty prefix", body: { prefix: "" }, status: 400 },
    { name: "15 bytes", body: { byteLength: 15 }, status: 400 },
    { name: "16 bytes", body: { byteLength: 16 }, status: 200 },
    { name: "255 bytes", body: { byteLength: 255 }, status: 200 },
    { name: "256 bytes", body: { byteLength: 256 }, status: 400 },
    { name: "an empty externalId", body: { externalId: "" }, status: 400 },
    { name: "an externalId of 256", body: { externalId: "e".repeat(256) }, status: 400 },
    { name: "an externalId with a slash", body: { externalId: "a/b" }, status: 400 },
    { name: "100 roles that do not exist", body: { roles: many(100, (i) => `r${i}`) }, status: 404 },
    { name: "101 roles", body: { roles: many(101, (i) => `r${i}`) }, status: 400 },
    { name: "a role of 128", body: { roles: ["r".repeat(128)] }, status: 404 },
    { name: "a role of 129", body: { roles: ["r".repeat(129)] }, status: 400 },
    { name: "1000 permissions", body: { permissions: many(1000, (i) => `bulk.p${i}`) }, status: 200 },
    { name: "1001 permissions", body: { permissions: many(1001, (i) => `bulk.p${i}`) }, status: 400 },
    { name: "a slug of 128", body: { permissions: ["s".repeat(128)] }, status: 200 },
    { name: "a slug of 129", body: { permissions: ["s".repeat(129)] }, status: 400 },
    { name: "a slug of every character", body: { permissions: ["aZ0_:-.*"] }, status: 200 },
    { name: "a slug with a space", body: { permissions: ["a b"] }, status: 400 },
    { name: "expires -1", body: { expires: -1 }, status: 400 },
    { name: "expires 0", body: { expires: 0 }, status: 200 },
    { name: "expires in 2100", body: { expires: 4_102_444_800_000 }, status: 200 },
    { name: "expires after 2100", body: { expires: 4_102_444_800_001 }, status: 400 },
    { name: "negative credits", body: { credits: { remaining: -1 } }, status: 400 },
    { name: "0 credits", body: { credits: { remaining: 0 } }, status: 200 },
    { name: "2^53-1 credits", body: { credits: { remaining: Number.MAX_SAFE_INTEGER } }, status: 200 },
    { name: "credits without remaining", body: { credits: {} }, status: 400 },
    { name: "unlimited credits", body: { credits: { remaining: null } }, status: 200 },
    { name: "credits null", body: { credits: null }, status: 400 },
    {
      name: "a refill of 0",
      body: { credits: { remaining: 1, refill: { interval: "daily", amount: 0 } } },
      status: 400,
    },
    {
      name: "an unknown interval",
      body: { credits: { remaining: 1, refill: { interval: "weekly", amount: 1 } } },
      status: 400,
    },
    {
      name: "a refill of unlimited credits",
      body: { credits: { remaining: null, refill: { interval: "daily", amount: 1 } } },
      status: 400,
    },
    {
      name: "monthly without a day",
      body: { credits: { remaining: 1, refill: { interval: "monthly", amount: 1 } } },
      status: 400,
    },
    {
      name: "daily with a day",
      body: { credits: { remaining: 1, refill: { interval: "daily", amount: 1, refillDay: 1 } } },
      status: 400,
    },
    {
      name: "day 32",
      body: { credits: { remaining: 1, refill: { interval: "monthly", amount: 1, refillDay: 32 } } },
      status: 400,
    },
    {
      name: "day 31",
      body: { credits: { remaining: 1, refill: { interval: "monthly", amount: 1, refillDay: 31 } } },
      status: 200,
    },
    {
      name: "an unknown member of a refill",
      body: { credits: { remaining: 1, refill: { interval: "daily", amount: 1, x: 1 } } },
      status: 400,
    },
    { name: "50 limits", body: { ratelimits: many(50, (i) => ({ ...limit, name: `limit${i}` })) }, status: 200 },
    { name: "51 limits", body: { ratelimits: many(51, (i) => ({ ...limit, name: `limit${i}` })) }, status: 400 },
    { name: "an unknown member of a limit", body: { ratelimits: [{ ...limit, nope: 1 }] }, status: 200 },
    { name: "a limit of 0", body: { ratelimits: [{ ...limit, limit: 0 }] }, status: 400 },
    {
      name: "a limit without autoApply",
      body: { ratelimits: [{ name: "abc", limit: 1, duration: 1000 }] },
      status: 200,
    },
    { name: "enabled as a text", body: { enabled: "true" }, status: 400 },
    { name: "an API id of 2", body: { apiId: "ab" }, status: 400 },
    { name: "an API id of 3", body: { apiId: "abc" }, status: 404 },
    { name: "empty lists", body: { permissions: [], roles: [], ratelimits: [] }, status: 200 },
  ])("createKey with $name returns $status", async ({ body, status }) => {
    const reply = await t.call("keys.createKey", { apiId, ...body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(status);
  });
});

describe("order of checks", () => {
  const bad = { credits: { remaining: null, refill: { interval: "daily", amount: 1 } }, roles: ["missing"] };
  test("createKey checks for 404 (API), 403, 412, 400 (refill) and 404 (role) in this order", async () => {
    const reader = await t.rootKey(["api.*.read_key"]);
    const kind = async (body: object, rootKey?: string) => {
      const reply = await t.call("keys.createKey", { apiId, ...body }, rootKey === undefined ? {} : { rootKey });
      return [reply.status, reply.body.error.type.split("/").at(-1)];
    };
    expect(await kind({ ...bad, recoverable: true, apiId: "api_missing0" }, reader)).toEqual([404, "api_not_found"]);
    expect(await kind({ ...bad, recoverable: true }, reader)).toEqual([403, "forbidden"]);
    expect(await kind({ ...bad, recoverable: true })).toEqual([412, "precondition_failed"]);
    expect(await kind(bad)).toEqual([400, "invalid_input"]);
    expect(await kind({ roles: ["missing"] })).toEqual([404, "role_not_found"]);
  });

  test("createKey needs a permission only on its API, even for new slugs and for roles", async () => {
    const rootKey = await t.rootKey([`api.${apiId}.create_key`]);
    const reply = await t.call(
      "keys.createKey",
      { apiId, permissions: ["brand.new"], externalId: "brand_new" },
      { rootKey },
    );
    expect(reply.status).toBe(200);
    const { apiId: other } = await t.data("apis.createApi", { name: "other" });
    const refused = await t.call("keys.createKey", { apiId: other }, { rootKey });
    expect(refused.body.error.detail).toContain(`api.*.create_key or api.${other}.create_key`);
  });

  test("failed createKey leaves no objects behind", async () => {
    const workspace = await t.makeWorkspace();
    const as = { rootKey: workspace.rootKey };
    const { apiId: own } = await t.data("apis.createApi", { name: "abc" }, as);
    const reply = await t.call(
      "keys.createKey",
      { apiId: own, externalId: "ghost", permissions: ["ghost.read"], roles: ["missing"] },
      as,
    );
    expect(reply.status).toBe(404);
    expect(await countRows(workspace.id)).toBe(0);
  });
});

describe("objects created with the key", () => {
  test("createKey reuses existing slugs and ignores duplicate slugs, roles and limits", async () => {
    await t.data("permissions.createPermission", { name: "Spelt", slug: "Spelt.Read" });
    await t.data("permissions.createRole", { name: "Viewer" });
    const { keyId } = await create({
      permissions: ["spelt.read", "SPELT.READ", "other.read", "Other.Read"],
      roles: ["viewer", "Viewer"],
      ratelimits: [limit, { ...limit, limit: 99 }],
    });
    const key = await read(keyId);
    expect(key.permissions).toEqual(["Spelt.Read", "other.read"]);
    expect(key.roles).toEqual(["Viewer"]);
    expect(key.ratelimits).toMatchObject([{ name: "requests", limit: 99 }]);
  });

  test("concurrent createKey calls share a new externalId and slug", async () => {
    const made = await Promise.all(
      many(8, (i) => create({ externalId: "shared_user", permissions: [`shared.z${i % 2}`, "shared.a"] })),
    );
    const keys = await Promise.all(made.map(({ keyId }) => read(keyId)));
    expect(new Set(keys.map(({ identity }) => identity.id)).size).toBe(1);
    const { rows } = await t.deps.db.query("select slug from permissions where slug like 'shared.%'");
    expect(rows).toHaveLength(3);
  });

  test("createKey writes audit entries for all created objects under one correlation id", async () => {
    const workspace = await t.makeWorkspace();
    const as = { rootKey: workspace.rootKey };
    const { apiId: own } = await t.data("apis.createApi", { name: "abc" }, as);
    await t.data("permissions.createRole", { name: "reader" }, as);
    const before = (await t.audit(workspace.id)).length;
    const { keyId, key } = await t.data(
      "keys.createKey",
      { apiId: own, externalId: "u", permissions: ["new.a", "new.b"], roles: ["reader"] },
      as,
    );
    const audit = (await t.audit(workspace.id)).slice(before);
    expect(audit.map(({ event }) => event)).toEqual([
      "authorization.connect_permission_and_key",
      "authorization.connect_permission_and_key",
      "authorization.connect_role_and_key",
      "identity.create",
      "key.create",
      "permission.create",
      "permission.create",
    ]);
    expect(new Set(audit.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    expect(audit.find(({ event }) => event === "key.create")?.targets).toMatchObject([
      { type: "key", id: keyId },
      { type: "api", id: own },
    ]);
    expect(JSON.stringify(audit)).not.toContain(key);
  });
});

describe("for a manager", () => {
  const MANAGER = { "Postern-Manager": "prod/Key/shop/billing" };
  test("createKey by a manager with an existing key name gets 409, and the error names the key", async () => {
    const make = (body: object) => t.call("keys.createKey", { apiId, ...body }, { headers: MANAGER });
    const first = await make({ name: "one" });
    expect(first.status).toBe(200);
    expect((await make({ name: "two" })).status).toBe(200);
    const again = await make({ name: "one" });
    expect(again.body.error).toMatchObject({ status: 409, type: "https://docs.test/errors/managed_exists" });
    expect(again.body.error.detail).toContain(first.body.data.keyId);
    await t.call("keys.deleteKey", { keyId: first.body.data.keyId }, { headers: MANAGER });
    expect((await make({ name: "one" })).status).toBe(200);
    expect((await make({})).status).toBe(200);
    expect((await make({})).status).toBe(409);
  });

  test("concurrent createKey calls by one manager create only one key", async () => {
    const replies = await Promise.all(
      many(5, () => t.call("keys.createKey", { apiId, name: "race" }, { headers: MANAGER })),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
    for (const { status, body } of replies) {
      if (status === 409) expect(body.error.type).toBe("https://docs.test/errors/managed_exists");
    }
  });
});
