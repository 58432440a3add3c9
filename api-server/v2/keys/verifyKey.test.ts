import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
let apiId: string;
const events: UsageEvent[] = [];
beforeAll(async () => {
  t = await buildTestApp({
    deps: ({ events: sink }) => ({
      events: {
        add: (event) => void events.push(event),
        addLine: (_workspaceId: string, line: string) => void events.push(JSON.parse(line)),
        flush: () => sink.flush(),
        dropped: () => 0,
        close: () => sink.close(),
      },
    }),
  });
  ({ apiId } = await t.data("apis.createApi", { name: "payments" }));
});
afterAll(() => t.close());
beforeEach(() => {
  events.length = 0;
});

const create = async (body: object = {}): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId, ...body });
const verify = (key: string, body: object = {}, rootKey?: string) =>
  t.data("keys.verifyKey", { key, ...body }, rootKey === undefined ? {} : { rootKey });
const codeOf = async (...args: Parameters<typeof verify>): Promise<string> => (await verify(...args)).code;
/** An hour's window: no test runs over the end of one, but for one in an hour. */
const HOUR = 3_600_000;
const limit = { name: "requests", limit: 10, duration: HOUR, autoApply: true };

describe("the response", () => {
  test("verifyKey returns only the required fields for a minimal key", async () => {
    const { keyId, key } = await create();
    expect(await verify(key)).toEqual({ valid: true, code: "VALID", keyId, enabled: true });
  });

  test("verifyKey returns all fields for a complete key", async () => {
    const shared = { ...limit, name: "shared", autoApply: false };
    const { identityId } = await t.data("identities.createIdentity", {
      externalId: "everything",
      meta: { who: "me" },
      ratelimits: [shared, { ...limit, limit: 3 }],
    });
    await t.data("permissions.createRole", { name: "writer", permissions: ["documents.write", "documents.read"] });
    const { keyId, key } = await create({
      name: "n",
      externalId: "everything",
      meta: { plan: "pro" },
      roles: ["writer"],
      permissions: ["documents.read", "a.read"],
      expires: 4_102_444_800_000,
      credits: { remaining: 5 },
      ratelimits: [limit],
    });
    expect(await verify(key)).toEqual({
      valid: true,
      code: "VALID",
      keyId,
      enabled: true,
      name: "n",
      meta: { plan: "pro" },
      expires: 4_102_444_800_000,
      permissions: ["a.read", "documents.read", "documents.write"],
      roles: ["writer"],
      credits: 4,
      // The key's own limit hides the identity's of the same name.
      identity: {
        id: identityId,
        externalId: "everything",
        meta: { who: "me" },
        ratelimits: [{ id: expect.any(String), ...shared }],
      },
      ratelimits: [
        { id: expect.stringMatching(/^rl_/), ...limit, exceeded: false, remaining: 9, reset: expect.any(Number) },
      ],
    });
  });
});

describe("NOT_FOUND", () => {
  const nothing = { valid: false, code: "NOT_FOUND" };
  test("verifyKey returns NOT_FOUND for unknown keys, key ids, keys in another case and keys with spaces", async () => {
    const { keyId, key } = await create();
    for (const wrong of ["nope", keyId, ` ${key}`, `${key} `, "ünïcode 🔑"])
      expect(await verify(wrong)).toEqual(nothing);
  });

  test("verifyKey returns NOT_FOUND for a root key", async () => {
    expect(await verify(t.workspace.rootKey)).toEqual(nothing);
  });

  test("verifyKey returns NOT_FOUND for keys of other workspaces and of APIs without permission", async () => {
    const { key } = await create();
    const other = await t.makeWorkspace();
    expect(await verify(key, {}, other.rootKey)).toEqual(nothing);
    const { apiId: own } = await t.data("apis.createApi", { name: "own" });
    const rootKey = await t.rootKey([`api.${own}.verify_key`]);
    expect(await verify(key, {}, rootKey)).toEqual(nothing);
    const { key: ownKey } = await t.data("keys.createKey", { apiId: own });
    expect(await codeOf(ownKey, {}, rootKey)).toBe("VALID");
  });

  test("verifyKey with an unknown migration returns NOT_FOUND", async () => {
    expect(await verify("pre_short_long", { migrationId: "mig_1" })).toEqual(nothing);
    expect((await t.call("keys.verifyKey", { key: "x", migrationId: "m".repeat(257) })).status).toBe(400);
  });

  test("verifyKey returns NOT_FOUND before it checks the query syntax, and records no event", async () => {
    expect(await verify("nope", { permissions: "AND" })).toEqual(nothing);
    expect(events).toEqual([]);
  });

  test("verifyKey without any verify_key permission returns 403 for all keys", async () => {
    const { key } = await create();
    const rootKey = await t.rootKey(["api.*.read_key"]);
    for (const asked of [key, "nope"]) {
      const reply = await t.call("keys.verifyKey", { key: asked }, { rootKey });
      expect([reply.status, reply.body.error.detail]).toEqual([403, expect.stringContaining("verify_key")]);
    }
  });

  test("verifyKey accepts a new key immediately after a NOT_FOUND for its hash", async () => {
    // Not even a hash can be chosen beforehand, so the key goes away and comes back behind the API.
    const { keyId, key } = await create();
    await t.deps.db.query("update keys set deleted_at = 1 where id = $1", [keyId]);
    const ref = async () => {
      const { rows } = await t.deps.db.query<{ hash: string }>("select hash from keys where id = $1", [keyId]);
      return { workspaceId: t.workspace.id, kind: "key" as const, id: rows[0]?.hash ?? "" };
    };
    t.deps.projection.drop([await ref()]);
    expect(await codeOf(key)).toBe("NOT_FOUND");
    await t.deps.db.query("update keys set deleted_at = null where id = $1", [keyId]);
    t.deps.projection.drop([await ref()]);
    expect(await codeOf(key)).toBe("VALID");
  });
});

describe("precedence", () => {
  const setWorkspace = async (enabled: boolean) => {
    await t.deps.db.query("update workspaces set enabled = $2 where id = $1", [t.workspace.id, enabled]);
    t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "workspace", id: t.workspace.id }]);
  };

  test("verifyKey reports the first check that rejects the key", async () => {
    const { apiId: strict } = await t.data("apis.createApi", { name: "strict" });
    const setIps = async (list: string[]) => {
      await t.deps.db.query("update apis set ip_allow_list = $2 where id = $1", [strict, list]);
      t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "api", id: strict }]);
    };
    await setIps(["10.0.0.1"]);
    const { keyId, key } = await create({
      apiId: strict,
      enabled: false,
      expires: 0,
      credits: { remaining: 0 },
      ratelimits: [{ ...limit, limit: 1 }],
    });
    const asked = { permissions: "missing.one", ratelimits: [{ name: "requests", cost: 2 }] };
    const update = (body: object) => t.data("keys.updateKey", { keyId, ...body });
    expect(await codeOf(key, asked)).toBe("DISABLED");
    await update({ enabled: true });
    expect(await codeOf(key, asked)).toBe("EXPIRED");
    await update({ expires: null });
    expect(await codeOf(key, asked)).toBe("FORBIDDEN");
    await setIps(["10.0.0.1", "127.0.0.1"]);
    expect(await codeOf(key, asked)).toBe("INSUFFICIENT_PERMISSIONS");
    expect(await verify(key, { ratelimits: asked.ratelimits })).toMatchObject({ code: "RATE_LIMITED", credits: 0 });
    expect(await verify(key)).toMatchObject({ code: "USAGE_EXCEEDED", credits: 0 });
    await update({ credits: null, ratelimits: [] });
    expect(await codeOf(key)).toBe("VALID");
  });

  test("root keys of a disabled workspace are rejected before any key is looked up", async () => {
    await setWorkspace(false);
    expect((await t.call("keys.verifyKey", { key: "x" })).status).toBe(403);
    await setWorkspace(true);
  });

  test("verifyKey accepts a key in the exact millisecond of its expiry", async () => {
    let nowMs = Date.now();
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const { apiId: own } = await clock.data("apis.createApi", { name: "abc" });
    const { key } = await clock.data("keys.createKey", { apiId: own, expires: nowMs + 1000 });
    const at = async (ms: number) => {
      nowMs = ms;
      return (await clock.data("keys.verifyKey", { key })).code;
    };
    const expires = nowMs + 1000;
    expect(await at(expires)).toBe("VALID");
    expect(await at(expires + 1)).toBe("EXPIRED");
    await clock.close();
  });
});

describe("the permission query", () => {
  test.each([
    { query: "documents.read", code: "VALID" },
    { query: "documents.write", code: "VALID" },
    { query: "(users.view AND documents.read) OR nothing", code: "VALID" },
    { query: "users.edit", code: "INSUFFICIENT_PERMISSIONS" },
    { query: "documents", code: "INSUFFICIENT_PERMISSIONS" },
  ])("verifyKey with the permission query $query returns $code", async ({ query, code }) => {
    const { key } = await create({ permissions: ["documents.*", "users.view"] });
    expect(await codeOf(key, { permissions: query })).toBe(code);
  });

  test.each(["   ", "AND a", "a AND", "a AND ()", "(a AND b", "a b", "a,b"])(
    "verifyKey rejects invalid permission query %j even for a disabled key",
    async (query) => {
      const { key } = await create({ enabled: false });
      const reply = await t.call("keys.verifyKey", { key, permissions: query });
      expect(reply.status).toBe(400);
      expect(reply.body.error.type).toBe("https://docs.test/errors/permissions_query_syntax_error");
      expect(reply.body.error.detail).toMatch(/\d/);
      expect(events).toEqual([]);
    },
  );

  test("verifyKey accepts a deeply nested permission query of up to 1,000 characters", async () => {
    const { key } = await create({ permissions: ["a"] });
    expect(await codeOf(key, { permissions: `${"(".repeat(499)}a${")".repeat(499)}` })).toBe("VALID");
    expect((await t.call("keys.verifyKey", { key, permissions: "a".repeat(1001) })).status).toBe(400);
  });
});

describe("rate limits", () => {
  const named = (data: { ratelimits: Array<{ name: string }> }, name: string) =>
    data.ratelimits.find((one) => one.name === name);

  test("verifyKey admits exactly as many requests as a rate limit allows, even concurrently", async () => {
    const { key } = await create({ ratelimits: [limit] });
    const codes = await Promise.all(Array.from({ length: 15 }, () => codeOf(key)));
    expect(codes.filter((code) => code === "VALID")).toHaveLength(10);
    expect(codes.filter((code) => code === "RATE_LIMITED")).toHaveLength(5);
  });

  test("verifyKey charges either all rate limits or none, and if it rejects, reports what remains without the charge", async () => {
    const { key } = await create({
      ratelimits: [
        { ...limit, name: "minute", limit: 12 },
        { ...limit, name: "month", limit: 200, duration: 2 * HOUR },
      ],
    });
    for (let i = 0; i < 12; i++) expect(await codeOf(key)).toBe("VALID");
    const refused = await verify(key);
    expect(refused.code).toBe("RATE_LIMITED");
    expect(named(refused, "minute")).toMatchObject({ exceeded: true, remaining: 0 });
    expect(named(refused, "month")).toMatchObject({ exceeded: false, remaining: 188 });
    expect(refused.ratelimits.map(({ name }: { name: string }) => name)).toEqual(["minute", "month"]);
  });

  test("verifyKey shares identity limits between keys unless a key limit shadows them", async () => {
    await t.data("identities.createIdentity", { externalId: "sharing", ratelimits: [{ ...limit, limit: 2 }] });
    const one = await create({ externalId: "sharing" });
    const other = await create({ externalId: "sharing" });
    const own = await create({ externalId: "sharing", ratelimits: [{ ...limit, limit: 1 }] });
    expect([await codeOf(one.key), await codeOf(other.key), await codeOf(one.key)]).toEqual([
      "VALID",
      "VALID",
      "RATE_LIMITED",
    ]);
    expect([await codeOf(own.key), await codeOf(own.key)]).toEqual(["VALID", "RATE_LIMITED"]);
  });

  test("verifyKey counts a limit without autoApply only when the call names it", async () => {
    const { key } = await create({ ratelimits: [{ ...limit, autoApply: false, limit: 1 }] });
    for (let i = 0; i < 3; i++) expect(await verify(key)).not.toHaveProperty("ratelimits");
    const asked = { ratelimits: [{ name: "requests" }] };
    expect([await codeOf(key, asked), await codeOf(key, asked)]).toEqual(["VALID", "RATE_LIMITED"]);
  });

  test("verifyKey with cost 0 checks an applied limit without charging", async () => {
    const { key } = await create({ ratelimits: [{ ...limit, limit: 1 }] });
    const check = { ratelimits: [{ name: "requests", cost: 0 }] };
    for (let i = 0; i < 3; i++) expect(await codeOf(key, check)).toBe("VALID");
    expect(await codeOf(key)).toBe("VALID");
    expect(await verify(key, check)).toMatchObject({ code: "VALID", ratelimits: [{ remaining: 0 }] });
    expect(await codeOf(key)).toBe("RATE_LIMITED");
  });

  test("verifyKey uses inline limits and completes them from stored limits", async () => {
    const { key } = await create({ ratelimits: [{ ...limit, autoApply: false }] });
    expect(
      (await verify(key, { ratelimits: [{ name: "ad hoc", limit: 5, duration: HOUR, cost: 2 }] })).ratelimits,
    ).toEqual([
      {
        id: "",
        name: "ad hoc",
        limit: 5,
        duration: HOUR,
        exceeded: false,
        remaining: 3,
        reset: expect.any(Number),
        autoApply: false,
      },
    ]);
    expect((await verify(key, { ratelimits: [{ name: "requests", limit: 4 }] })).ratelimits).toMatchObject([
      { id: "", limit: 4, duration: HOUR },
    ]);
    expect(await codeOf(key, { ratelimits: [{ name: "none at all", limit: 0, duration: HOUR }] })).toBe("RATE_LIMITED");
  });

  test("verifyKey with an unknown limit gets 412 and charges nothing", async () => {
    const { keyId, key } = await create({ externalId: "named", ratelimits: [limit] });
    for (const entry of [{ name: "unknown" }, { name: "unknown", limit: 5 }, { name: "unknown", duration: HOUR }]) {
      const reply = await t.call("keys.verifyKey", { key, ratelimits: [entry] });
      expect(reply.body.error).toMatchObject({ status: 412, type: "https://docs.test/errors/precondition_failed" });
      for (const part of ["unknown", keyId, "named"]) expect(reply.body.error.detail).toContain(part);
    }
    expect(await verify(key)).toMatchObject({ ratelimits: [{ remaining: 9 }] });
  });

  test("verifyKey uses the last of several limit entries with one name", async () => {
    const { key } = await create();
    const entry = { name: "ad hoc", duration: HOUR };
    expect(
      (await verify(key, { ratelimits: [{ name: "ad hoc" }, { ...entry, limit: 1 }, { ...entry, limit: 7 }] }))
        .ratelimits,
    ).toMatchObject([{ limit: 7, remaining: 6 }]);
  });

  test("verification rejected by a limit spends no credits, but limits that were charged stay charged", async () => {
    const { key } = await create({ credits: { remaining: 1 }, ratelimits: [{ ...limit, limit: 2 }] });
    expect(await verify(key)).toMatchObject({ code: "VALID", credits: 0 });
    expect(await verify(key)).toMatchObject({ code: "USAGE_EXCEEDED", credits: 0, ratelimits: [{ remaining: 0 }] });
    expect(await verify(key)).toMatchObject({ code: "RATE_LIMITED", credits: 0 });
  });
});

describe("credits", () => {
  test("verifyKey spends the full credit cost or nothing, and never goes below 0", async () => {
    const { key } = await create({ credits: { remaining: 5 } });
    expect(await verify(key, { credits: { cost: 15 } })).toMatchObject({
      code: "USAGE_EXCEEDED",
      valid: false,
      credits: 5,
    });
    expect(await verify(key, { credits: { cost: 5 } })).toMatchObject({ code: "VALID", credits: 0 });
    expect(await verify(key, { credits: { cost: 0 } })).toMatchObject({ code: "VALID", credits: 0 });
    expect(await verify(key)).toMatchObject({ code: "USAGE_EXCEEDED", credits: 0 });
  });

  test("concurrent verifyKey calls never overspend credits", async () => {
    const { key } = await create({ credits: { remaining: 10 } });
    const codes = await Promise.all(Array.from({ length: 25 }, () => codeOf(key)));
    expect(codes.filter((code) => code === "VALID")).toHaveLength(10);
  });

  test("verifyKey ignores the credit cost of an unlimited key", async () => {
    const { key } = await create();
    expect(await verify(key, { credits: { cost: 1_000_000_000_000 } })).toEqual({
      valid: true,
      code: "VALID",
      keyId: expect.any(String),
      enabled: true,
    });
  });

  test("verifyKey returns the remaining credits even if an earlier check rejects the key", async () => {
    const { key } = await create({ enabled: false, credits: { remaining: 5 } });
    expect(await verify(key)).toMatchObject({ code: "DISABLED", credits: 5 });
  });
});

describe("recording", () => {
  test("verifyKey records one event for each verification after query parsing", async () => {
    const { keyId, key } = await create({ externalId: "recorded", credits: { remaining: 3 } });
    const { body } = await t.call("keys.verifyKey", { key, tags: ["a", "b"], credits: { cost: 2 } });
    await verify(key, { credits: { cost: 2 } });
    await t.data("keys.updateKey", { keyId, enabled: false });
    await verify(key);
    expect(events).toMatchObject([
      {
        type: "verification",
        requestId: body.meta.requestId,
        workspaceId: t.workspace.id,
        apiId,
        keySpaceId: expect.stringMatching(/^ks_/),
        keyId,
        identityId: expect.stringMatching(/^id_/),
        externalId: "recorded",
        outcome: "VALID",
        tags: ["a", "b"],
        region: "test",
        source: "api",
        spentCredits: 2,
      },
      { outcome: "USAGE_EXCEEDED", spentCredits: 0 },
      { outcome: "DISABLED", spentCredits: 0 },
    ]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(3);
    expect(JSON.stringify(events)).not.toContain(key);
  });

  test("verifyKey writes no audit entry", async () => {
    const { key } = await create();
    const before = (await t.audit()).length;
    await verify(key);
    expect(await t.audit()).toHaveLength(before);
  });
});

describe("bounds", () => {
  const entry = { name: "abc", limit: 1, duration: 1000 };
  test.each([
    { name: "an empty key", body: { key: "" }, status: 400 },
    { name: "a key of 512", body: { key: "k".repeat(512) }, status: 200 },
    { name: "a key of 513", body: { key: "k".repeat(513) }, status: 400 },
    { name: "20 tags", body: { tags: Array(20).fill("t") }, status: 200 },
    { name: "21 tags", body: { tags: Array(21).fill("t") }, status: 400 },
    { name: "an empty tag", body: { tags: [""] }, status: 400 },
    { name: "a tag of 512", body: { tags: ["t".repeat(512)] }, status: 200 },
    { name: "a tag of 513", body: { tags: ["t".repeat(513)] }, status: 400 },
    { name: "an empty query", body: { permissions: "" }, status: 400 },
    { name: "a cost of 10^12", body: { credits: { cost: 1_000_000_000_000 } }, status: 200 },
    { name: "a cost over 10^12", body: { credits: { cost: 1_000_000_000_001 } }, status: 400 },
    { name: "a negative cost", body: { credits: { cost: -1 } }, status: 400 },
    { name: "credits without a cost", body: { credits: {} }, status: 400 },
    { name: "an unknown member of credits", body: { credits: { cost: 1, x: 1 } }, status: 400 },
    {
      name: "50 limits",
      body: { ratelimits: Array.from({ length: 50 }, (_, i) => ({ ...entry, name: `limit${i}` })) },
      status: 200,
    },
    {
      name: "51 limits",
      body: { ratelimits: Array.from({ length: 51 }, (_, i) => ({ ...entry, name: `limit${i}` })) },
      status: 400,
    },
    { name: "a limit's name of 2", body: { ratelimits: [{ ...entry, name: "ab" }] }, status: 400 },
    { name: "a limit's name of 255", body: { ratelimits: [{ ...entry, name: "n".repeat(255) }] }, status: 200 },
    { name: "a limit's name of 256", body: { ratelimits: [{ ...entry, name: "n".repeat(256) }] }, status: 400 },
    { name: "a negative limit", body: { ratelimits: [{ ...entry, limit: -1 }] }, status: 400 },
    {
      name: "a window of 999 ms",
      body: { ratelimits: [{ ...entry, duration: 999 }] },
      status: 400,
      location: "body.ratelimits[0].duration",
    },
    { name: "apiId, which v2 does not have", body: { apiId: "api_1234" }, status: 400, location: "body.apiId" },
    { name: "no limits", body: { ratelimits: [] }, status: 200 },
  ])("verifyKey with $name returns $status", async ({ body, status, location }) => {
    const { key } = await create();
    const reply = await t.call("keys.verifyKey", { key, ...body });
    expect(reply.status).toBe(status);
    if (location !== undefined) expect(reply.body.error.errors[0].location).toBe(location);
  });
});

test("verifyKey serves cached keys without the database and fails with 500 otherwise", async () => {
  const lost = await buildTestApp();
  const { apiId: own } = await lost.data("apis.createApi", { name: "abc" });
  const { key } = await lost.data("keys.createKey", { apiId: own, credits: { remaining: 5 }, ratelimits: [limit] });
  expect(await lost.data("keys.verifyKey", { key })).toMatchObject({ code: "VALID", credits: 4 });
  const disabled = await lost.data("keys.createKey", { apiId: own, credits: { remaining: 5 }, enabled: false });
  expect(await lost.data("keys.verifyKey", { key: disabled.key })).toMatchObject({ code: "DISABLED", credits: 5 });
  await lost.dropDatabase();
  const { code, credits } = await lost.data("keys.verifyKey", { key: disabled.key });
  expect([code, credits]).toEqual(["DISABLED", undefined]);
  expect(await lost.data("keys.verifyKey", { key })).toMatchObject({
    code: "VALID",
    credits: 3,
    ratelimits: [{ remaining: 8 }],
  });
  const reply = await lost.call("keys.verifyKey", { key: "unknown" });
  expect(reply.body.error).toMatchObject({ status: 500, type: "https://docs.test/errors/service_unavailable" });
  await lost.close();
});

describe("the client's address", () => {
  test("verifyKey uses the client address that a trusted proxy reports, or the address of the connection", async () => {
    const proxied = await buildTestApp({ trustedProxies: ["127.0.0.1", "10.1.0.0/16"] });
    const { apiId: own } = await proxied.data("apis.createApi", { name: "abc" });
    await proxied.deps.db.query("update apis set ip_allow_list = '{203.0.113.7, 2001:db8::1}' where id = $1", [own]);
    proxied.deps.projection.drop([{ workspaceId: proxied.workspace.id, kind: "api", id: own }]);
    const { key } = await proxied.data("keys.createKey", { apiId: own });
    const from = async (forwarded: string) =>
      (await proxied.data("keys.verifyKey", { key }, { headers: { "x-forwarded-for": forwarded } })).code;
    expect(await from("203.0.113.7")).toBe("VALID");
    expect(await from("203.0.113.7, 10.1.2.3")).toBe("VALID");
    expect(await from("2001:DB8:0:0::1")).toBe("VALID");
    expect(await from("203.0.113.7:4711")).toBe("VALID");
    expect(await from("[2001:db8::1]:4711, 10.1.2.3")).toBe("VALID");
    expect(await from("203.0.113.7, nobody")).toBe("FORBIDDEN");
    // A client behind the last trusted proxy could have written anything before its own address.
    expect(await from("203.0.113.7, 198.51.100.9")).toBe("FORBIDDEN");
    await proxied.close();
    const { apiId: direct } = await t.data("apis.createApi", { name: "abc" });
    await t.deps.db.query("update apis set ip_allow_list = '{203.0.113.7}' where id = $1", [direct]);
    t.deps.projection.drop([{ workspaceId: t.workspace.id, kind: "api", id: direct }]);
    const { key: directKey } = await t.data("keys.createKey", { apiId: direct });
    const reply = await t.data("keys.verifyKey", { key: directKey }, { headers: { "x-forwarded-for": "203.0.113.7" } });
    expect(reply.code).toBe("FORBIDDEN");
  });
});
