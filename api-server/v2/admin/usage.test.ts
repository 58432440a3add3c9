import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { QueryRejected } from "../../../analytics/contract.ts";
import { FUNCTION_DOCS } from "../../../analytics/dialect/functions/registry.ts";
import { PUBLIC_TABLES } from "../../../analytics/tables.ts";
import { EventsUnavailable } from "../../../edge/events/contract.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
/** How the streams and the store answer instead, once it is set. */
let streams: (() => Promise<{ ageMs: number } | undefined>) | undefined;
let waitingMs: (() => Promise<number>) | undefined;
beforeAll(async () => {
  t = await buildTestApp({
    deps: ({ analytics, eventStreams }) => ({
      eventStreams: {
        measure: async (ids) => {
          if (streams === undefined) return eventStreams.measure(ids);
          const depth = await streams();
          const depths =
            depth === undefined
              ? []
              : [{ workspaceId: ids[0] ?? "", entries: 1, bytes: 1, capacityBytes: 1e6, ...depth }];
          return { depths, setAside: [], failed: [] };
        },
      },
      analytics: {
        kind: analytics.kind,
        query: (query, run) => analytics.query(query, run),
        countVerifications: (question) => analytics.countVerifications(question),
        countLatencies: (question) => analytics.countLatencies(question),
        uncountedForMs: (workspaceId) => waitingMs?.() ?? analytics.uncountedForMs(workspaceId),
      },
    }),
  });
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;

describe("admin.getUsageState", () => {
  const ageOf = async (rootKey?: string): Promise<number | undefined> => {
    const { now, countedUntil } = await t.data("admin.getUsageState", {}, rootKey === undefined ? {} : { rootKey });
    return countedUntil === undefined ? undefined : now - countedUntil;
  };

  test("admin.getUsageState returns the effective query limits and the workspace's own settings", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    expect(await t.data("admin.getUsageState", {}, { rootKey })).toMatchObject({
      enabled: true,
      retentionDays: { verifications: 30, ratelimits: { raw: 30, minute: 7, hour: 30, day: 100, month: 1095 } },
      limits: { maxRows: 10_000, timeoutMs: 10_000, queriesPerHour: 1_000, runMsPerHour: 1_800_000 },
    });
    await t.deps.db.query(
      "insert into analytics_settings (workspace_id, enabled, verifications_days, queries_per_hour) values ($1, false, 7, 5)",
      [id],
    );
    expect(await t.data("admin.getUsageState", {}, { rootKey })).toMatchObject({
      enabled: false,
      retentionDays: { verifications: 7 },
      limits: { queriesPerHour: 5 },
    });
  });

  test("admin.getUsageState reports current data when no events are pending", async () => {
    const ageMs = await ageOf();
    expect(ageMs).toBeGreaterThanOrEqual(1_000);
    expect(ageMs).toBeLessThan(10_000);
  });

  test("admin.getUsageState reports events of its workspace that wait in the stream or for a roll-up", async () => {
    const { apiId } = await t.data("apis.createApi", { name: "counted" });
    const { key } = await t.data("keys.createKey", { apiId });
    await t.data("keys.verifyKey", { key });
    await t.edge.sink.flush();
    streams = async () => ({ ageMs: 60_000 });
    expect(await ageOf()).toBeGreaterThanOrEqual(61_000);
    streams = undefined;
    await t.ingest();
    await t.deps.db.query(
      `insert into rollup_queue (workspace_id, events, groups, verifications, ratelimits, queued_at)
       values ($1, 1, 1, '{}', '{}', now() - interval '90 seconds')`,
      [t.workspace.id],
    );
    const ageMs = await ageOf();
    expect(ageMs).toBeGreaterThanOrEqual(91_000);
    expect(ageMs).toBeLessThan(120_000);
    expect(await ageOf((await t.makeWorkspace()).rootKey)).toBeLessThan(10_000);
    await t.deps.db.query("delete from rollup_queue");
    expect(await ageOf()).toBeLessThan(10_000);
  });

  test.each([
    { name: "the streams are away", broken: () => (streams = () => Promise.reject(new EventsUnavailable("away"))) },
    {
      name: "the store is away",
      broken: () => (waitingMs = () => Promise.reject(new QueryRejected("unavailable", "away"))),
    },
  ])("admin.getUsageState omits only the data age while $name", async ({ broken }) => {
    broken();
    expect(await ageOf()).toBeUndefined();
    [streams, waitingMs] = [undefined, undefined];
    expect(await ageOf()).toBeDefined();
  });
});

test("admin.getAnalyticsSchema lists every queryable table, column and function", async () => {
  const { tables, functions } = await t.data("admin.getAnalyticsSchema", {});
  const shown = tables.map(
    ({ name, of, columns }: { name: string; of: string; columns: { name: string; type: string }[] }) => ({
      name,
      of,
      columns: Object.fromEntries(columns.map((column) => [column.name, column.type])),
    }),
  );
  expect(shown).toEqual(PUBLIC_TABLES.map(({ name, of, columns }) => ({ name, of, columns })));
  expect(functions).toEqual(FUNCTION_DOCS);
});

describe("admin.resolveNames", () => {
  const names = (kind: string, ids: readonly string[], rootKey = t.workspace.rootKey) =>
    t.data("admin.resolveNames", { kind, ids }, { rootKey });

  test("admin.resolveNames returns names of keys, APIs and namespaces, including deleted ones", async () => {
    const name = "<img src=x onerror=alert(1)> 名前";
    const { apiId } = await t.data("apis.createApi", { name });
    const { keyId, key } = await t.data("keys.createKey", { apiId, name, prefix: "shop" });
    const unnamed = await t.data("keys.createKey", { apiId });
    await t.data("keys.deleteKey", { keyId: unnamed.keyId });
    const { namespaceId } = await t.data("ratelimit.createNamespace", { name: "sms" });
    const [ofKey, ofUnnamed] = [keyId, unnamed.keyId].map((id) => ({ id, apiId }));
    const expected = [
      { ...ofKey, name, start: key.slice(0, key.indexOf("_") + 5), deleted: false },
      { ...ofUnnamed, start: expect.any(String), deleted: true },
    ];
    const found = await names("key", [unnamed.keyId, "key_missing", keyId]);
    expect(found).toHaveLength(2);
    expect(found).toEqual(
      expect.arrayContaining(expected.map(({ start: _, ...rest }) => expect.objectContaining(rest))),
    );
    const [api] = await names("api", [apiId]);
    expect(api).toEqual({ id: apiId, name, keySpaceId: expect.stringMatching(/^ks_/), deleted: false });
    expect(await names("api", [api.keySpaceId])).toEqual([api]);
    expect(await names("namespace", [namespaceId])).toEqual([{ id: namespaceId, name: "sms", deleted: false }]);
  });

  test("admin.resolveNames returns only readable names of its workspace", async () => {
    const [one, two] = await Promise.all(["one", "two"].map((name) => t.data("apis.createApi", { name })));
    const rootKey = await t.rootKey([`api.${one.apiId}.read_api`, `api.${one.apiId}.read_key`]);
    expect((await names("api", [one.apiId, two.apiId], rootKey)).map(({ id }: { id: string }) => id)).toEqual([
      one.apiId,
    ]);
    const keys = await Promise.all([one, two].map(({ apiId }) => t.data("keys.createKey", { apiId })));
    const found = await names(
      "key",
      keys.map(({ keyId }) => keyId),
      rootKey,
    );
    expect(found.map(({ id }: { id: string }) => id)).toEqual([keys[0].keyId]);
    const stranger = await t.makeWorkspace();
    for (const [kind, id] of [
      ["api", one.apiId],
      ["key", keys[0].keyId],
    ]) {
      expect(await names(kind, [id], stranger.rootKey)).toEqual([]);
    }
  });
});

describe("admin.getUsage", () => {
  interface Row {
    readonly time?: number;
    readonly keyId?: string;
    readonly identity?: { readonly id: string; readonly externalId: string };
    readonly total: number;
    readonly outcomes: Readonly<Record<string, number>>;
  }
  let rootKey: string;
  let workspaceId: string;
  let apiIds: string[];
  let keyIds: string[];
  /** Start of the hour of the first verification. */
  let hourMs: number;
  beforeAll(async () => {
    ({ rootKey, id: workspaceId } = await t.makeWorkspace());
    const [one, two] = await Promise.all(["one", "two"].map((name) => t.data("apis.createApi", { name }, { rootKey })));
    apiIds = [one.apiId, two.apiId];
    const keys = await Promise.all([
      t.data("keys.createKey", { apiId: one.apiId, externalId: "user_1" }, { rootKey }),
      t.data("keys.createKey", { apiId: two.apiId, enabled: false }, { rootKey }),
      t.data("keys.createKey", { apiId: two.apiId, externalId: "user_2" }, { rootKey }),
    ]);
    keyIds = keys.map(({ keyId }) => keyId);
    hourMs = Math.floor(t.deps.nowMs() / HOUR_MS) * HOUR_MS;
    for (const [index, { key }] of keys.entries()) {
      for (let call = 0; call <= index; call++) await t.data("keys.verifyKey", { key }, { rootKey });
    }
    await t.ingest();
  });

  const range = () => ({ from: hourMs, to: hourMs + 2 * HOUR_MS });
  const ask = async (body: object, as = rootKey): Promise<{ rows: Row[]; hasMore: boolean }> =>
    t.data("admin.getUsage", { ...range(), ...body }, { rootKey: as });
  const keysOf = async (body: object, as = rootKey) => {
    const { rows, hasMore } = await ask({ groupBy: "key", ...body }, as);
    return { keys: rows.map(({ keyId, total }) => [keyId, total]), hasMore };
  };

  test("admin.getUsage counts the range by outcome", async () => {
    const zeros = { NOT_FOUND: 0, FORBIDDEN: 0, INSUFFICIENT_PERMISSIONS: 0, USAGE_EXCEEDED: 0, RATE_LIMITED: 0 };
    const outcomes = { ...zeros, VALID: 4, DISABLED: 2, EXPIRED: 0 };
    expect(await ask({})).toEqual({ rows: [{ total: 6, outcomes }], hasMore: false });
  });

  test("admin.getUsage returns every hour or day up to the exclusive end", async () => {
    const hours = async (to: number) =>
      (await ask({ from: hourMs - 2 * HOUR_MS + 1, to, groupBy: "hour", limit: 1 })).rows;
    const before = await hours(hourMs);
    expect(before.map(({ time, total }) => [time, total])).toEqual([
      [hourMs - 2 * HOUR_MS, 0],
      [hourMs - HOUR_MS, 0],
    ]);
    expect((await hours(hourMs + 1)).at(-1)?.time).toBe(hourMs);
    const all = await hours(hourMs + 2 * HOUR_MS);
    expect([all.length, all.reduce((sum, { total }) => sum + total, 0)]).toEqual([4, 6]);
    const days = (await ask({ from: hourMs - 48 * HOUR_MS, groupBy: "day" })).rows;
    expect(days.map(({ time = 1 }) => time % (24 * HOUR_MS))).toEqual(days.map(() => 0));
    expect(days.reduce((sum, { total }) => sum + total, 0)).toBe(6);
  });

  test("admin.getUsage returns keys and identities, most used first, up to the limit", async () => {
    const [one, two, three] = keyIds;
    const all = [
      [three, 3],
      [two, 2],
      [one, 1],
    ];
    expect(await keysOf({})).toEqual({ keys: all, hasMore: false });
    expect(await keysOf({ limit: 3 })).toEqual({ keys: all, hasMore: false });
    expect(await keysOf({ limit: 2 })).toEqual({ keys: all.slice(0, 2), hasMore: true });
    const { rows } = await ask({ groupBy: "identity" });
    const ids = await Promise.all(
      ["user_2", "user_1"].map((identity) => t.data("identities.getIdentity", { identity }, { rootKey })),
    );
    expect(rows.map(({ identity, total }) => [identity, total])).toEqual([
      [{ id: ids[0].id, externalId: "user_2" }, 3],
      [{ id: ids[1].id, externalId: "user_1" }, 1],
    ]);
  });

  test("admin.getUsage counts one API, or all APIs that the root key is allowed to read", async () => {
    const [one, two] = apiIds;
    const ofOne = { keys: [[keyIds[0], 1]], hasMore: false };
    expect(await keysOf({ apiId: one })).toEqual(ofOne);
    const narrow = await t.rootKey([`api.${one}.read_analytics`, "api.api_none.read_analytics"], { workspaceId });
    expect(await keysOf({}, narrow)).toEqual(ofOne);
    expect((await ask({}, narrow)).rows).toMatchObject([{ total: 1 }]);
    const stranger = await t.rootKey(["api.api_none.read_analytics"], { workspaceId });
    expect((await ask({}, stranger)).rows).toMatchObject([{ total: 0 }]);
    const statusOf = async (apiId: string | undefined) =>
      (await t.call("admin.getUsage", { ...range(), apiId }, { rootKey: narrow })).status;
    expect([await statusOf(two), await statusOf("api_none")]).toEqual([403, 404]);
  });

  test("admin.getUsage rejects an empty range and one with too many hours", async () => {
    const refusal = async (body: object) => {
      const reply = await t.call("admin.getUsage", { ...range(), ...body }, { rootKey });
      return [reply.status, reply.body.error.errors[0].location, reply.body.error.detail];
    };
    expect(await refusal({ to: hourMs })).toEqual([400, "body.to", "must be after from"]);
    const long = { from: 0, groupBy: "hour" };
    expect(await refusal(long)).toEqual([400, "body.groupBy", expect.stringContaining("more than 10000 rows")]);
    expect(await refusal({ limit: 10_001, groupBy: "key" })).toEqual([400, "body.limit", expect.any(String)]);
  });

  test("admin.getUsage charges no query quota, and returns 412 while analytics are disabled", async () => {
    const { id, rootKey: own } = await t.makeWorkspace();
    await t.deps.db.query("insert into analytics_settings (workspace_id, queries_per_hour) values ($1, 1)", [id]);
    for (let call = 0; call < 3; call++) expect((await ask({}, own)).rows).toHaveLength(1);
    await t.deps.db.query("update analytics_settings set enabled = false where workspace_id = $1", [id]);
    const reply = await t.call("admin.getUsage", range(), { rootKey: own });
    expect([reply.status, reply.body.error.type]).toEqual([412, expect.stringContaining("analytics_not_configured")]);
  });
});

describe("admin.getLatencies", () => {
  test("admin.getLatencies reads verifications within the retention period that the caller is allowed to read", async () => {
    const { rootKey, id } = await t.makeWorkspace();
    const { apiId } = await t.data("apis.createApi", { name: "timed" }, { rootKey });
    const other = await t.data("apis.createApi", { name: "other" }, { rootKey });
    const { key, keyId } = await t.data("keys.createKey", { apiId, externalId: "user_1" }, { rootKey });
    for (let call = 0; call < 3; call++) await t.data("keys.verifyKey", { key }, { rootKey });
    await t.ingest();
    const now = t.deps.nowMs();
    const ask = (body: object, as = rootKey) =>
      t.data("admin.getLatencies", { from: now - HOUR_MS, to: now + HOUR_MS, step: "hour", ...body }, { rootKey: as });
    const rows = await ask({});
    const total = (found: { count: number }[]) => found.reduce((sum, { count }) => sum + count, 0);
    expect(total(rows)).toBe(3);
    for (const { p50, p95, p99 } of rows) expect([p50, p95, p99]).toEqual([p50, p95, p99].toSorted((a, b) => a - b));
    expect(total(await ask({ keyId, externalId: "user_1" }))).toBe(3);
    expect(await ask({ externalId: "nobody" })).toEqual([]);
    const narrow = async (apiId: string) => t.rootKey([`api.${apiId}.read_analytics`], { workspaceId: id });
    expect(total(await ask({}, await narrow(apiId)))).toBe(3);
    expect(await ask({}, await narrow(other.apiId))).toEqual([]);
    expect(await ask({ from: 0, to: HOUR_MS })).toEqual([]);
    const tooMany = await t.call("admin.getLatencies", { from: 0, to: 1_001 * 60_000, step: "minute" }, { rootKey });
    expect([tooMany.status, tooMany.body.error.detail]).toEqual([400, expect.stringContaining("1000 steps")]);
  });

  test("admin.getLatencies is rejected above quota or with analytics disabled", async () => {
    const { rootKey, id } = await t.makeWorkspace();
    const body = { from: t.deps.nowMs() - HOUR_MS, to: t.deps.nowMs(), step: "minute" };
    await t.deps.db.query("insert into analytics_settings (workspace_id, queries_per_hour) values ($1, 1)", [id]);
    expect((await t.call("admin.getLatencies", body, { rootKey })).status).toBe(200);
    const refused = await t.call("admin.getLatencies", body, { rootKey });
    expect([refused.status, Number(refused.headers["retry-after"]) > 0]).toEqual([429, true]);
    await t.deps.db.query("update analytics_settings set enabled = false where workspace_id = $1", [id]);
    expect((await t.call("admin.getLatencies", body, { rootKey })).status).toBe(412);
  });
});
