import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ConsumeRequest, CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

const HOUR_MS = 3_600_000;

let api: TestApp;
const events: UsageEvent[] = [];
const consumed: ConsumeRequest[] = [];
let statements: string[] = [];
/** Set by a test: what the shared store does with a strict charge. */
let breakStrict = false;

beforeAll(async () => {
  api = await buildTestApp({
    deps: (deps) => ({
      // Seen from outside only; each does what it does.
      events: { ...bound(deps.events), add: (event) => void events.push(event) },
      counters: {
        close: () => deps.counters.close(),
        consume: (request) => {
          consumed.push(request);
          const isStrict = request.limits.some(({ accuracy }) => accuracy === "strict");
          if (breakStrict && isStrict) return Promise.reject(new CountersUnavailable("away"));
          return deps.counters.consume(request);
        },
      },
    }),
  });
  const { db } = api.deps;
  const query = db.query.bind(db) as (...args: unknown[]) => unknown;
  db.query = ((...args: unknown[]) => {
    const [first] = args;
    statements.push(typeof first === "string" ? first : String((first as { name?: string }).name));
    return query(...args);
  }) as typeof db.query;
});
afterAll(() => api.close());

const bound = (sink: TestApp["deps"]["events"]) => ({
  addLine: (workspaceId: string, line: string) => sink.addLine(workspaceId, line),
  flush: () => sink.flush(),
  dropped: () => sink.dropped(),
  close: () => sink.close(),
});

const aCall = { identifier: "user_1", limit: 3, duration: HOUR_MS };
const limit = (body: object) => api.data("ratelimit.limit", { ...aCall, ...body });

describe("counting", () => {
  test("ratelimit.limit admits exactly n calls for a limit of n", async () => {
    const remaining: number[] = [];
    for (let i = 0; i < 3; i++) remaining.push((await limit({ namespace: "exact" })).remaining);
    expect(remaining).toEqual([2, 1, 0]);
    const refused = await limit({ namespace: "exact" });
    expect(refused).toEqual({ success: false, limit: 3, remaining: 0, reset: expect.any(Number) });
    expect(refused.reset % HOUR_MS).toBe(0);
  });

  test("ratelimit.limit with cost 0 consumes nothing and passes at the limit", async () => {
    expect(await limit({ namespace: "look", cost: 0 })).toMatchObject({ success: true, remaining: 3 });
    await limit({ namespace: "look", cost: 3 });
    expect(await limit({ namespace: "look", cost: 0 })).toMatchObject({ success: true, remaining: 0 });
  });

  test("ratelimit.limit with a cost above the limit is denied and charges nothing", async () => {
    expect(await limit({ namespace: "dear", cost: 4 })).toMatchObject({ success: false, remaining: 0 });
    expect(await limit({ namespace: "dear", cost: 3 })).toMatchObject({ success: true, remaining: 0 });
  });

  test("ratelimit.limit counts identifiers and namespaces separately", async () => {
    await limit({ namespace: "apart", cost: 3 });
    expect(await limit({ namespace: "apart", identifier: "user_2" })).toMatchObject({ remaining: 2 });
    expect(await limit({ namespace: "apart2" })).toMatchObject({ remaining: 2 });
  });

  test("ratelimit.limit uses the same counter for a namespace's id and name", async () => {
    await limit({ namespace: "both" });
    const { items } = { items: await api.data("ratelimit.listNamespaces", { search: "both" }) };
    expect(await limit({ namespace: items[0].id })).toMatchObject({ remaining: 1 });
  });

  test("ratelimit.limit keeps the count for a new limit but not for a new duration", async () => {
    await limit({ namespace: "raise", cost: 3 });
    expect(await limit({ namespace: "raise", limit: 5 })).toMatchObject({ success: true, limit: 5, remaining: 1 });
    expect(await limit({ namespace: "raise", duration: 2 * HOUR_MS })).toMatchObject({ remaining: 2 });
  });

  test("100 concurrent ratelimit.limit calls admit exactly the limit", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => limit({ namespace: "crowd", limit: 42, identifier: "all" })),
    );
    expect(replies.filter(({ success }) => success)).toHaveLength(42);
  });

  test("ratelimit.limit counts locally while counters are unavailable", async () => {
    breakStrict = true;
    try {
      const replies = [];
      for (let i = 0; i < 4; i++) replies.push((await limit({ namespace: "alone" })).success);
      expect(replies).toEqual([true, true, true, false]);
      expect(api.logs.filter((line) => line.includes("shared counters are away"))).toHaveLength(1);
    } finally {
      breakStrict = false;
    }
  });
});

describe("bounds", () => {
  const good = { namespace: "bounds", identifier: "x", limit: 1, duration: 1000 };
  test.each([
    { name: "namespace of 1", body: { namespace: "n" } },
    { name: "namespace of 512", body: { namespace: "n".repeat(512) } },
    { name: "identifier of 512, of any characters", body: { identifier: "ü".repeat(512) } },
    { name: "a namespace of 512 characters of four bytes", body: { namespace: "😀".repeat(512) } },
    { name: "the shortest duration", body: { duration: 1000 } },
    { name: "the longest duration", body: { duration: 2_592_000_000 } },
    { name: "the greatest limit", body: { limit: Number.MAX_SAFE_INTEGER } },
    { name: "cost 0", body: { cost: 0 } },
  ])("ratelimit.limit accepts $name", async ({ body }) => {
    expect((await api.call("ratelimit.limit", { ...good, ...body })).status).toBe(200);
  });
  test.each([
    { field: "namespace", value: "" },
    { field: "namespace", value: "n".repeat(513) },
    { field: "identifier", value: "" },
    { field: "identifier", value: "n".repeat(513) },
    { field: "limit", value: 0 },
    { field: "limit", value: 1.5 },
    { field: "limit", value: "5" },
    { field: "limit", value: Number.MAX_SAFE_INTEGER + 1 },
    { field: "duration", value: 999 },
    { field: "duration", value: 2_592_000_001 },
    { field: "cost", value: -1 },
    { field: "cost", value: null },
    { field: "async", value: true },
  ])("ratelimit.limit rejects the value $value of $field", async ({ field, value }) => {
    const reply = await api.call("ratelimit.limit", { ...good, [field]: value });
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });
  test.each(["namespace", "identifier", "limit", "duration"])(
    "ratelimit.limit rejects a request without the field %s",
    async (field) => {
      const reply = await api.call("ratelimit.limit", { ...good, [field]: undefined });
      expect(reply.status).toBe(400);
      expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
    },
  );
});

describe("namespaces", () => {
  test("100 concurrent first ratelimit.limit calls create one namespace", async () => {
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) => limit({ namespace: "first-use", limit: 1000, identifier: `u${i % 3}` })),
    );
    expect(replies.every(({ success }) => success)).toBe(true);
    expect(await api.data("ratelimit.listNamespaces", { search: "first-use" })).toHaveLength(1);
    const rows = (await api.audit()).filter(({ targets }) => targets[0]?.name === "first-use");
    expect(rows).toMatchObject([{ event: "ratelimitNamespace.create", actor: { type: "rootkey" } }]);
  });

  test("ratelimit.limit creates a namespace with an id-like name", async () => {
    expect(await limit({ namespace: "rlns_looksLikeAnId" })).toMatchObject({ success: true });
    const [namespace] = await api.data("ratelimit.listNamespaces", { search: "rlns_looksLikeAnId" });
    expect(namespace.name).toBe("rlns_looksLikeAnId");
    expect(namespace.id).not.toBe("rlns_looksLikeAnId");
  });

  test("ratelimit.limit prefers a namespace id over an equal name", async () => {
    const first = await api.data("ratelimit.createNamespace", { name: "wins" });
    await api.data("ratelimit.createNamespace", { name: first.namespaceId });
    await limit({ namespace: first.namespaceId, cost: 3 });
    expect(await limit({ namespace: "wins" })).toMatchObject({ success: false });
  });

  test("ratelimit.limit namespace names are case-sensitive", async () => {
    await limit({ namespace: "Case", cost: 3 });
    expect(await limit({ namespace: "case" })).toMatchObject({ success: true });
  });

  test("ratelimit.limit of a new namespace requires create_namespace, then limit for all namespaces", async () => {
    const cases = [
      { held: ["ratelimit.*.limit"], missing: "ratelimit.*.create_namespace" },
      { held: ["ratelimit.*.create_namespace"], missing: "ratelimit.*.limit" },
    ];
    for (const { held, missing } of cases) {
      const rootKey = await api.rootKey(held);
      const reply = await api.call("ratelimit.limit", { ...aCall, namespace: "never-made" }, { rootKey });
      expect(reply.status).toBe(403);
      expect(reply.body.error).toMatchObject({ title: "Forbidden", type: "https://docs.test/errors/forbidden" });
      expect(reply.body.error.detail).toContain(missing);
    }
    expect(await api.data("ratelimit.listNamespaces", { search: "never-made" })).toEqual([]);
  });

  test("ratelimit.limit of a known namespace requires limit, and the error names both permission forms", async () => {
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "mine" });
    const allowed = await api.rootKey([`ratelimit.${namespaceId}.limit`]);
    expect((await api.call("ratelimit.limit", { ...aCall, namespace: "mine" }, { rootKey: allowed })).status).toBe(200);
    const rootKey = await api.rootKey(["ratelimit.mine.limit", "ratelimit.*.*"]);
    const reply = await api.call("ratelimit.limit", { ...aCall, namespace: "mine" }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`ratelimit.*.limit or ratelimit.${namespaceId}.limit`);
  });

  test("ratelimit.limit finds a namespace that another replica created, despite a negative cache entry", async () => {
    const name = "made-elsewhere";
    const rootKey = await api.rootKey(["ratelimit.rlns_elsewhere.limit"]);
    const ask = () => api.call("ratelimit.limit", { ...aCall, namespace: name }, { rootKey });
    expect((await ask()).status).toBe(403);
    await api.deps.db.query(
      "insert into ratelimit_namespaces (id, workspace_id, name, created_at) values ('rlns_elsewhere', $1, $2, 0)",
      [api.workspace.id, name],
    );
    // Found in the database, then read once to be cached.
    for (let i = 0; i < 2; i++) expect((await ask()).status).toBe(200);
    statements = [];
    expect((await ask()).status).toBe(200);
    expect(statements).toEqual([]);
  });

  test("ratelimit.limit reports a deleted namespace before 403 and does not recreate it", async () => {
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "gone" });
    await limit({ namespace: "gone", cost: 3 });
    await api.data("ratelimit.deleteNamespace", { namespace: "gone" });
    const rootKey = await api.rootKey(["identity.*.read_identity"]);
    for (const namespace of ["gone", namespaceId]) {
      const reply = await api.call("ratelimit.limit", { ...aCall, namespace }, { rootKey });
      expect(reply.status).toBe(410);
      expect(reply.body.error).toMatchObject({ title: "Resource Gone" });
      expect(reply.body.error.type).toBe("https://docs.test/errors/ratelimit_namespace_gone");
      expect(reply.body.error.errors).toBeUndefined();
    }
    const successor = await api.data("ratelimit.createNamespace", { name: "gone" });
    expect(successor.namespaceId).not.toBe(namespaceId);
    expect(await limit({ namespace: "gone" })).toMatchObject({ success: true, remaining: 2 });
    expect((await api.call("ratelimit.limit", { ...aCall, namespace: namespaceId })).status).toBe(410);
  });

  test("ratelimit.limit treats another workspace's namespace as nonexistent", async () => {
    const other = await api.makeWorkspace();
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "theirs" });
    await limit({ namespace: "theirs", cost: 3 });
    for (const namespace of ["theirs", namespaceId]) {
      const reply = await api.data("ratelimit.limit", { ...aCall, namespace }, { rootKey: other.rootKey });
      expect(reply).toMatchObject({ success: true, remaining: 2 });
    }
  });
});

describe("one call", () => {
  test("ratelimit.limit call with cached data makes no SQL query and one counter call, and records one event", async () => {
    await api.data("ratelimit.createNamespace", { name: "hot" });
    await limit({ namespace: "hot", identifier: "i", limit: 100 });
    statements = [];
    consumed.length = 0;
    events.length = 0;
    const reply = await api.call("ratelimit.limit", { ...aCall, namespace: "hot", identifier: "i", limit: 100 });
    expect(statements).toEqual([]);
    expect(consumed).toHaveLength(1);
    expect(events).toEqual([
      {
        type: "ratelimit",
        id: reply.body.meta.requestId,
        requestId: reply.body.meta.requestId,
        timeMs: expect.any(Number),
        workspaceId: api.workspace.id,
        namespaceId: expect.stringMatching(/^rlns_/),
        identifier: "i",
        passed: true,
        latencyMs: expect.any(Number),
        overrideId: undefined,
        limit: 100,
        remaining: 98,
        resetMs: reply.body.data.reset,
        cost: 1,
      },
    ]);
  });
});

describe("overrides", () => {
  const setOverride = (body: object) =>
    api.data("ratelimit.setOverride", { namespace: "over", limit: 7, duration: HOUR_MS, ...body });

  beforeAll(() => api.data("ratelimit.createNamespace", { name: "over" }));

  test("ratelimit.limit prefers an exact override, then the pattern with the most literal characters", async () => {
    const ids: Record<string, string> = {};
    for (const [identifier, limit] of Object.entries({
      "*": 10,
      "p_*": 11,
      "p_*_eu": 12,
      "*_eu_p": 13,
      p_1: 14,
      "p_**": 15,
    })) {
      ids[identifier] = (await setOverride({ identifier, limit })).overrideId;
    }
    const [lesser] = ["p_*", "p_**"].sort((a, b) => ((ids[a] ?? "") < (ids[b] ?? "") ? -1 : 1));
    const expected = {
      other: "*",
      p_1: "p_1",
      p_2: lesser ?? "",
      p_2_eu: "p_*_eu",
      P_2: "*",
      "p_**": "p_**",
      "p_\n": undefined,
    };
    for (const [identifier, pattern] of Object.entries(expected)) {
      const reply = await limit({ namespace: "over", identifier });
      expect([identifier, reply.overrideId]).toEqual([identifier, pattern === undefined ? undefined : ids[pattern]]);
      if (pattern === undefined) continue;
      const override = await api.data("ratelimit.getOverride", { namespace: "over", identifier });
      expect(override).toEqual({
        overrideId: reply.overrideId,
        identifier: pattern,
        limit: reply.limit,
        duration: HOUR_MS,
      });
    }
  });

  test("ratelimit.limit applies an override's limit and duration, and limit 0 always denies", async () => {
    await api.data("ratelimit.createNamespace", { name: "replace" });
    const call = { namespace: "replace", identifier: "vip", cost: 2 };
    expect(await limit(call)).toMatchObject({ limit: 3, remaining: 1 });
    const { overrideId } = await setOverride({
      namespace: "replace",
      identifier: "vip",
      limit: 9,
      duration: 2 * HOUR_MS,
    });
    expect(await limit(call)).toMatchObject({ success: true, limit: 9, remaining: 7, overrideId });
    expect((await setOverride({ namespace: "replace", identifier: "vip", limit: 0 })).overrideId).toBe(overrideId);
    expect(await limit({ ...call, cost: 0 })).toMatchObject({ success: false, limit: 0, remaining: 0, overrideId });
    await api.data("ratelimit.deleteOverride", { namespace: "replace", identifier: "vip" });
    const after = await limit({ ...call, cost: 1 });
    expect(after).toMatchObject({ success: true, limit: 3, remaining: 0 });
    expect(after).not.toHaveProperty("overrideId");
  });

  test("ratelimit.limit counts async overrides locally and others strictly", async () => {
    await api.data("ratelimit.createNamespace", { name: "async" });
    await setOverride({ namespace: "async", identifier: "local", async: true });
    await setOverride({ namespace: "async", identifier: "strict" });
    consumed.length = 0;
    for (const identifier of ["local", "strict", "none"]) await limit({ namespace: "async", identifier });
    expect(consumed.map(({ limits }) => limits[0]?.accuracy)).toEqual(["local", "strict", "strict"]);
    await setOverride({ namespace: "async", identifier: "local" });
    await limit({ namespace: "async", identifier: "local" });
    expect(consumed.at(-1)?.limits[0]?.accuracy).toBe("strict");
  });
});
