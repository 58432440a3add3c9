import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

const NO_KEY = { rootKey: null } as const;
const HOUR_MS = 3_600_000;

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());

const create = async (body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...body });
/** Without a root key. */
const ask = (body: object) => t.call("v1/keys.verifyKey", body, NO_KEY);
const verify = async (key: string, body: object = {}) => {
  const reply = await ask({ key, ...body });
  if (reply.status !== 200) throw new Error(`${reply.status}: ${JSON.stringify(reply.body)}`);
  return reply.body;
};
const fails = async (key: string, body: object = {}) => {
  const { status, body: reply } = await ask({ key, ...body });
  return { status, code: reply.error.code, message: reply.error.message };
};
const limit = (name: string, more: object = {}) => ({ name, limit: 2, duration: HOUR_MS, autoApply: true, ...more });

/** The events of a key that wait to be stored. */
async function events(keyId: string): Promise<unknown[]> {
  await t.deps.events.flush();
  const found: unknown[] = [];
  await t.edge.events.take(t.workspace.id, async (taken) => {
    for (const event of taken) if (event.type === "verification" && event.keyId === keyId) found.push(event);
  });
  return found;
}

describe("the response", () => {
  test("v1 verifyKey of a minimal key returns only the required fields", async () => {
    const { keyId, key } = await create();
    const reply = await ask({ key });
    expect(reply.body).toEqual({
      valid: true,
      code: "VALID",
      requestId: expect.stringMatching(/^req_/),
      keyId,
      enabled: true,
      permissions: [],
      roles: [],
    });
  });

  test("v1 verifyKey of a complete key returns all fields", async () => {
    await t.data("permissions.createRole", { name: "Reader ✓", permissions: ["documents.read", "documents.list"] });
    const { keyId, key } = await create({
      name: 'the "name"',
      externalId: "user_all",
      meta: { plan: "pro", deep: [null, { ü: 1 }] },
      roles: ["Reader ✓"],
      permissions: ["documents.read", "a.b"],
      expires: 4_000_000_000_000,
      credits: { remaining: 5 },
      ratelimits: [limit("default", { limit: 10 }), limit("aaa", { limit: 3 })],
    });
    await t.deps.db.query("update keys set environment = 'prod', owner_id = 'other' where id = $1", [keyId]);
    const requested = {
      valid: true,
      code: "VALID",
      requestId: expect.any(String),
      keyId,
      enabled: true,
      permissions: ["a.b", "documents.list", "documents.read"],
      roles: ["Reader ✓"],
      name: 'the "name"',
      ownerId: "user_all",
      meta: { plan: "pro", deep: [null, { ü: 1 }] },
      expires: 4_000_000_000_000,
      environment: "prod",
      identity: { id: expect.stringMatching(/^id_/), externalId: "user_all", meta: {} },
      remaining: 4,
      ratelimit: { limit: 10, remaining: 9, reset: expect.any(Number) },
    };
    // psql changed the row behind the cache of this process, which the relay would announce.
    t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "key", id: hashKey(key) }]);
    expect(await verify(key)).toEqual(requested);
    await t.data("identities.deleteIdentity", { identity: "user_all" });
    const { identity: _, ...unlinked } = requested;
    expect(await verify(key)).toEqual({
      ...unlinked,
      ownerId: "other",
      remaining: 3,
      ratelimit: { ...requested.ratelimit, remaining: 8 },
    });
  });

  test.each([
    { name: "an unknown secret", key: async () => "never_issued" },
    { name: "a root key", key: async () => t.workspace.rootKey },
    {
      name: "a deleted key",
      key: async () => {
        const { keyId, key } = await create();
        await verify(key);
        await t.data("keys.deleteKey", { keyId });
        return key;
      },
    },
    {
      name: "a key of a deleted API",
      key: async () => {
        const gone = await t.data("apis.createApi", { name: "gone" });
        const { key } = await create({ apiId: gone.apiId });
        await verify(key);
        await t.data("apis.deleteApi", { apiId: gone.apiId });
        return key;
      },
    },
    { name: "a secret of 100,000 letters", key: async () => "ü".repeat(100_000) },
  ])("v1 verifyKey of $name returns only NOT_FOUND", async ({ key }) => {
    const secret = await key();
    for (let i = 0; i < 2; i++) {
      expect(await verify(secret)).toEqual({ valid: false, code: "NOT_FOUND", requestId: expect.any(String) });
    }
  });

  test("v1 verifyKey ignores any Authorization header", async () => {
    const { key } = await create();
    for (const authorization of ["nonsense", "Bearer never", `Bearer ${t.workspace.rootKey}`]) {
      const reply = await t.call("v1/keys.verifyKey", { key }, { rootKey: null, headers: { authorization } });
      expect(reply.body.code).toBe("VALID");
    }
  });

  test("v1 verifyKey verifies keys of any workspace", async () => {
    const other = await t.makeWorkspace();
    const asOther = { rootKey: other.rootKey };
    const { apiId: theirs } = await t.data("apis.createApi", { name: "theirs" }, asOther);
    const { key, keyId } = await t.data("keys.createKey", { apiId: theirs }, asOther);
    expect(await verify(key)).toMatchObject({ code: "VALID", keyId });
    expect(await verify(key, { apiId })).toMatchObject({ code: "FORBIDDEN", keyId });
    expect((await t.data("keys.verifyKey", { key })).code).toBe("NOT_FOUND");
  });
});

describe("the order of checks", () => {
  /** A key with every fault at once; each is mended in turn, and the next one shows. */
  test("v1 verifyKey reports the first failing check", async () => {
    const workspace = await t.makeWorkspace();
    const by = { rootKey: workspace.rootKey };
    const { apiId: here } = await t.data("apis.createApi", { name: "here" }, by);
    const { keyId, key } = await t.data(
      "keys.createKey",
      { apiId: here, enabled: false, expires: 1, credits: { remaining: 0 } },
      by,
    );
    const sql = async (text: string, values: unknown[] = []) => {
      await t.deps.db.query(text, values);
      t.deps.projection.forgetAll();
    };
    await sql("update apis set ip_allow_list = '{192.0.2.1}' where id = $1", [here]);
    await sql("update workspaces set enabled = false where id = $1", [workspace.id]);
    const bad = { and: [] };
    const body = { apiId: "api_another", authorization: { permissions: bad }, ratelimits: [{ name: "none" }] };
    const now = async (changed: object = {}) => {
      const { status, body: reply } = await ask({ key, ...body, ...changed });
      return status === 200 ? reply.code : `${status} ${reply.error.code} ${reply.error.message}`;
    };

    expect(await now()).toBe("403 FORBIDDEN The workspace is disabled.");
    await sql("update workspaces set enabled = true where id = $1", [workspace.id]);
    expect(await now()).toBe("DISABLED");
    await t.data("keys.updateKey", { keyId, enabled: true }, by);
    expect(await now()).toBe("FORBIDDEN");
    expect(await now({ apiId: here })).toBe("EXPIRED");
    await t.data("keys.updateKey", { keyId, expires: null }, by);
    expect(await now({ apiId: here })).toBe("FORBIDDEN");
    await sql("update apis set ip_allow_list = '{127.0.0.1}' where id = $1", [here]);
    expect(await now({ apiId: here })).toMatch(/^400 BAD_REQUEST authorization.permissions.and: expected/);
    const unmet = { apiId: here, authorization: { permissions: { or: ["a.b"] } } };
    expect(await now(unmet)).toBe("INSUFFICIENT_PERMISSIONS");
    await t.data("keys.updateKey", { keyId, permissions: ["a.*"] }, by).catch(() => undefined);
    await t.data("keys.setPermissions", { keyId, permissions: ["a.*"] }, by);
    expect(await now(unmet)).toMatch(/^400 BAD_REQUEST ratelimits.0: the key .* has no limit none/);
    // Of two of one name the last counts.
    const twice = { ...unmet, ratelimits: [{ name: "none", limit: 5, duration: 1000 }, { name: "none" }] };
    expect(await now(twice)).toMatch(/^400 BAD_REQUEST ratelimits.1: the key .* has no limit none/);
    const exhausted = { ...unmet, ratelimits: [{ name: "none", limit: 0, duration: 1000 }] };
    expect(await now(exhausted)).toBe("RATE_LIMITED");
    expect(await now({ ...unmet, ratelimits: [] })).toBe("USAGE_EXCEEDED");
    await t.data("keys.updateCredits", { keyId, operation: "set", value: null }, by);
    expect(await now({ ...unmet, ratelimits: [] })).toBe("VALID");
  });

  test("v1 verifyKey records every outcome except NOT_FOUND and errors as an event", async () => {
    const { keyId, key } = await create({ credits: { remaining: 1 } });
    const tags = ["path=/ä", "x"];
    const valid = await verify(key, { tags });
    await verify(key);
    expect((await ask({ key, authorization: { permissions: 7 } })).status).toBe(400);
    await t.data("keys.updateKey", { keyId, enabled: false });
    await verify(key);
    const made = await events(keyId);
    expect(made.map((event) => (event as { outcome: string }).outcome)).toEqual([
      "VALID",
      "USAGE_EXCEEDED",
      "DISABLED",
    ]);
    expect(made[0]).toMatchObject({ requestId: valid.requestId, tags, spentCredits: 1, source: "api", apiId });
  });
});

describe("permissions", () => {
  test.each([
    { query: undefined, code: "VALID" },
    { query: null, code: "VALID" },
    { query: "", code: "VALID" },
    { query: "documents.read", code: "VALID" },
    { query: { and: ["documents.read", { or: ["x", "exact"] }] }, code: "VALID" },
    { query: "documents", code: "INSUFFICIENT_PERMISSIONS" },
    { query: { and: ["exact"], or: [] }, code: "VALID" },
  ])("v1 verifyKey with the permission query $query returns $code", async ({ query, code }) => {
    const { key } = await create({ permissions: ["documents.*", "exact"] });
    expect((await verify(key, { authorization: { permissions: query } })).code).toBe(code);
    expect((await verify(key, { authorization: {} })).code).toBe("VALID");
  });

  test("v1 verifyKey evaluates a permission query of maximum depth", async () => {
    const { key } = await create({ permissions: ["exact"] });
    const deep = (levels: number) => `${'{"or":['.repeat(levels)}"exact"${"]}".repeat(levels)}`;
    const send = (levels: number) =>
      ask(JSON.parse(`{"key":"${key}","authorization":{"permissions":${deep(levels)}}}`));
    expect((await send(248)).body.code).toBe("VALID");
    expect((await send(260)).body.error.code).toBe("BAD_REQUEST");
  });
});

describe("limits", () => {
  test("v1 verifyKey applies autoApply limits and named limits, and prefers to report an autoApply limit", async () => {
    const { key } = await create({
      ratelimits: [limit("zzz", { limit: 9 }), limit("bbb", { limit: 7 }), limit("named", { autoApply: false })],
    });
    expect((await verify(key)).ratelimit).toMatchObject({ limit: 7, remaining: 6 });
    for (const left of [1, 0]) {
      expect(await verify(key, { ratelimits: [{ name: "named" }] })).toMatchObject({ code: "VALID" });
      expect(left).toBeGreaterThanOrEqual(0);
    }
    const refused = await verify(key, { ratelimits: [{ name: "named" }] });
    expect(refused).toMatchObject({ valid: false, code: "RATE_LIMITED", ratelimit: { limit: 2, remaining: 0 } });
    // All or nothing: the refused call consumed nothing of the others.
    expect((await verify(key)).ratelimit).toMatchObject({ remaining: 3 });
  });

  test.each([
    // Neither `default` nor the first by name refuses here.
    { refusing: ["mmm"], reported: 3 },
    { refusing: ["zzz", "mmm"], reported: 3 },
    { refusing: ["zzz", "default"], reported: 2 },
    { refusing: [], reported: 2 },
  ])(
    "v1 verifyKey rejected by the limits $refusing reports the first of them, otherwise the default limit",
    async ({ refusing, reported }) => {
      const limits = { aaa: 1, default: 2, mmm: 3, zzz: 4 };
      const ratelimits = Object.entries(limits).map(([name, max]) => limit(name, { limit: max }));
      const { key } = await create({ ratelimits: ratelimits.toReversed() });
      const cost = (name: string) => (refusing.includes(name) ? 5 : 0);
      const asked = Object.keys(limits).map((name) => ({ name, cost: cost(name) }));
      const reply = await verify(key, { ratelimits: asked });
      expect(reply).toMatchObject({ valid: refusing.length === 0, ratelimit: { limit: reported } });
    },
  );

  test("v1 verifyKey charges the cost in the deprecated `ratelimit` to the limit `default`", async () => {
    const { key } = await create({ ratelimits: [limit("default", { limit: 100 }), limit("aaa", { limit: 100 })] });
    expect((await verify(key, { ratelimit: { cost: 10 } })).ratelimit).toMatchObject({ limit: 100, remaining: 90 });
    const both = { ratelimit: { cost: 50 }, ratelimits: [{ name: "default", cost: 5 }] };
    expect((await verify(key, both)).ratelimit.remaining).toBe(85);
    expect((await verify(key, { ratelimit: {} })).ratelimit.remaining).toBe(84);
    expect((await verify(key, { ratelimit: { cost: 0 } })).ratelimit.remaining).toBe(84);
  });

  test("v1 verifyKey ignores the cost in the deprecated `ratelimit` if no limit applies", async () => {
    const { key } = await create({ ratelimits: [limit("default", { limit: 1, autoApply: false })] });
    for (let i = 0; i < 3; i++) {
      const reply = await verify(key, { ratelimit: { cost: 5 } });
      expect(reply.code).toBe("VALID");
      expect(reply).not.toHaveProperty("ratelimit");
    }
  });

  test("v1 verifyKey charges the cost in the deprecated `ratelimit` to the identity's limit `default`", async () => {
    const externalId = "owner_of_default";
    await t.data("identities.createIdentity", { externalId, ratelimits: [limit("default", { limit: 100 })] });
    const { key } = await create({ externalId });
    expect((await verify(key, { ratelimit: { cost: 10 } })).ratelimit).toMatchObject({ limit: 100, remaining: 90 });
    const own = await create({ externalId, ratelimits: [limit("default", { limit: 5, autoApply: false })] });
    expect(await verify(own.key, { ratelimit: { cost: 10 } })).not.toHaveProperty("ratelimit");
  });

  test("v1 verifyKey shares identity limits among keys unless a key limit shadows them", async () => {
    await t.data("identities.createIdentity", { externalId: "shared", ratelimits: [limit("default")] });
    const [one, two] = [await create({ externalId: "shared" }), await create({ externalId: "shared" })];
    const own = await create({ externalId: "shared", ratelimits: [limit("default", { limit: 50 })] });
    expect((await verify(one.key)).ratelimit.remaining).toBe(1);
    expect((await verify(two.key)).ratelimit.remaining).toBe(0);
    expect((await verify(one.key)).code).toBe("RATE_LIMITED");
    expect((await verify(own.key)).ratelimit).toMatchObject({ limit: 50, remaining: 49 });
  });

  test("v1 verifyKey completes an inline limit from the stored limit, or rejects it", async () => {
    const { key } = await create({ ratelimits: [limit("stored", { autoApply: false })] });
    const inline = { name: "inline", limit: 1, duration: 1000 * 3600 };
    expect((await verify(key, { ratelimits: [inline] })).ratelimit).toMatchObject({ limit: 1, remaining: 0 });
    expect((await verify(key, { ratelimits: [inline] })).code).toBe("RATE_LIMITED");
    expect((await verify(key, { ratelimits: [{ name: "stored", limit: 40 }] })).ratelimit.limit).toBe(40);
    expect(await fails(key, { ratelimits: [{ name: "inline", limit: 1 }] })).toMatchObject({ code: "BAD_REQUEST" });
    expect(await fails(key, { ratelimits: [{ ...inline, duration: 999 }] })).toEqual({
      status: 400,
      code: "BAD_REQUEST",
      message: "ratelimits.0.duration: expected at least 1000 ms",
    });
  });
});

describe("credits", () => {
  test("v1 verifyKey charges one credit by default, and reports credits only if it checked them", async () => {
    const { keyId, key } = await create({ credits: { remaining: 5 }, ratelimits: [limit("default", { limit: 5 })] });
    expect((await verify(key)).remaining).toBe(4);
    expect((await verify(key, { remaining: { cost: 3 } })).remaining).toBe(1);
    expect((await verify(key, { remaining: { cost: 0 } })).remaining).toBe(1);
    const tooMuch = await verify(key, { remaining: { cost: 2 } });
    expect(tooMuch).toMatchObject({ valid: false, code: "USAGE_EXCEEDED", remaining: 1, ratelimit: { remaining: 1 } });
    expect(await verify(key)).toMatchObject({ code: "VALID", remaining: 0 });
    const limited = await verify(key);
    expect(limited).toMatchObject({ code: "RATE_LIMITED", ratelimit: { limit: 5, remaining: 0 } });
    expect(limited).not.toHaveProperty("remaining");
    await t.data("keys.updateKey", { keyId, enabled: false });
    expect(await verify(key)).not.toHaveProperty("remaining");
  });

  test("concurrent v1 and v2 verifications charge each credit exactly once", async () => {
    const { key } = await create({ credits: { remaining: 30 } });
    const calls = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? verify(key) : t.data("keys.verifyKey", { key })));
    const codes = (await Promise.all(calls)).map(({ code }) => code);
    expect(codes.filter((code) => code === "VALID")).toHaveLength(30);
    expect(codes.filter((code) => code === "USAGE_EXCEEDED")).toHaveLength(20);
  });
});

describe("the quota of the key's workspace", () => {
  test("v1 verifyKey counts toward the workspace quota and returns 429 with Retry-After", async () => {
    const workspace = await t.makeWorkspace();
    const by = { rootKey: workspace.rootKey };
    const { apiId: here } = await t.data("apis.createApi", { name: "here" }, by);
    const { key } = await t.data("keys.createKey", { apiId: here }, by);
    expect((await verify(key)).code).toBe("VALID");
    await t.deps.db.query("update workspaces set quota_per_minute = 2 where id = $1", [workspace.id]);
    t.deps.projection.drop([{ workspaceId: workspace.id, kind: "workspace", id: workspace.id }]);
    expect((await verify(key)).code).toBe("VALID");
    expect((await t.call("keys.whoami", { key }, by)).status).toBe(200);
    const refused = await ask({ key });
    expect(refused).toMatchObject({ status: 429, body: { error: { code: "RATE_LIMITED" } } });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    // Nobody's workspace pays for a secret that does not exist.
    expect((await verify("unknown")).code).toBe("NOT_FOUND");
  });
});

describe("lookup of a key's workspace", () => {
  test("v1 verifyKey caches the workspace of a key, or that the key does not exist, until the key changes", async () => {
    const { keyId, key } = await create();
    let asked = 0;
    const { query } = t.deps.db;
    t.deps.db.query = ((...args: Parameters<typeof query>) => {
      if ((args[0] as { name?: string }).name === "find-key-home") asked += 1;
      return query.apply(t.deps.db, args);
    }) as typeof query;
    try {
      for (let i = 0; i < 3; i++) await verify(key);
      expect(asked).toBe(1);
      const secret = `late_${randomBytes(16).toString("hex")}`;
      for (let i = 0; i < 3; i++) expect((await verify(secret)).code).toBe("NOT_FOUND");
      expect(asked).toBe(2);
      // Created by this process: its marks name the hash, and the absence is forgotten.
      const migrationId = "mig_home";
      await t.deps.db.query(
        "insert into migrations (id, workspace_id, name, algorithm, created_at) values ($1, $2, 'm', 'sha256', 1)",
        [migrationId, t.workspace.id],
      );
      await t.data("keys.migrateKeys", { migrationId, apiId, keys: [{ hash: hashKey(secret) }] });
      expect((await verify(secret)).code).toBe("VALID");
      await t.data("keys.updateKey", { keyId, name: "changed" });
      expect(await verify(key)).toMatchObject({ name: "changed" });
    } finally {
      t.deps.db.query = query;
    }
  });

  test("v1 verifyKey finds a key whose freed secret was reused in another workspace", async () => {
    const { keyId, key } = await create();
    await verify(key);
    await t.data("keys.deleteKey", { keyId, permanent: true });
    expect((await verify(key)).code).toBe("NOT_FOUND");
    const other = await t.makeWorkspace();
    const by = { rootKey: other.rootKey };
    const { apiId: theirs } = await t.data("apis.createApi", { name: "theirs" }, by);
    await t.deps.db.query(
      "insert into migrations (id, workspace_id, name, algorithm, created_at) values ('mig_other', $1, 'm', 'sha256', 1)",
      [other.id],
    );
    const keys = [{ hash: hashKey(key) }];
    await t.data("keys.migrateKeys", { migrationId: "mig_other", apiId: theirs, keys }, by);
    expect(await verify(key, { apiId: theirs })).toMatchObject({ code: "VALID" });
  });
});

describe("bounds", () => {
  test.each([
    { body: { key: "" }, place: "key" },
    { body: {}, place: "key" },
    { body: { key: "k", tags: Array.from({ length: 11 }, () => "t") }, place: "tags" },
    { body: { key: "k", tags: [""] }, place: "tags.0" },
    { body: { key: "k", tags: ["t".repeat(129)] }, place: "tags.0" },
    { body: { key: "k", remaining: { cost: -1 } }, place: "remaining.cost" },
    { body: { key: "k", remaining: { cost: 1.5 } }, place: "remaining.cost" },
    { body: { key: "k", ratelimit: { cost: -1 } }, place: "ratelimit.cost" },
    { body: { key: "k", ratelimits: [{ name: "" }] }, place: "ratelimits.0.name" },
    { body: { key: "k", ratelimits: [{ name: "n", limit: -1, duration: 1000 }] }, place: "ratelimits.0.limit" },
    { body: { key: "k\u0000" }, place: "key" },
  ])("v1 verifyKey with invalid $place gets 400 with or without a root key", async ({ body, place }) => {
    const { status, body: reply } = await ask(body);
    expect(status).toBe(400);
    expect(reply.error).toMatchObject({ code: "BAD_REQUEST", message: expect.stringContaining(`${place}: `) });
  });

  test("v1 verifyKey accepts minimum and maximum values, and ignores unknown members", async () => {
    const tags = Array.from({ length: 10 }, () => "t".repeat(128));
    const body = { tags, remaining: { cost: 0 }, ratelimits: [], unknown: { a: 1 } };
    expect((await verify((await create()).key, body)).code).toBe("VALID");
  });
});
