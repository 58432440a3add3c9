import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AnalyticsStore, QueryRejected } from "../../../analytics/contract.ts";
import { buildTestApp, type Reply, type TestApp, type Workspace } from "../../test/app.ts";

/*
 * The procedures of usage analytics (api-v2.md section 18). What SQL means is tested in test/analytics, on both stores.
 */

const VERIFICATIONS = "analytics.getVerifications";
const RATELIMITS = "analytics.getRatelimits";
const HOUR_MS = 3_600_000;

let t: TestApp;
/** How the store fails; undefined: it does not. */
let broken: QueryRejected | undefined;
const metrics = new Registry();
const queries: string[] = [];
let apis: readonly { readonly apiId: string; readonly key: string; readonly keyId: string }[];
let namespaces: readonly string[];

beforeAll(async () => {
  t = await buildTestApp({
    metrics,
    deps: ({ analytics }) => ({
      analytics: {
        kind: analytics.kind,
        countVerifications: (question) => analytics.countVerifications(question),
        countLatencies: (question) => analytics.countLatencies(question),
        uncountedForMs: (workspaceId) => analytics.uncountedForMs(workspaceId),
        query: ((query, run) => {
          queries.push(query.text);
          return broken === undefined ? analytics.query(query, run) : Promise.reject(broken);
        }) satisfies AnalyticsStore["query"],
      },
    }),
  });
  apis = [await anApi(), await anApi()];
  namespaces = await Promise.all(
    ["one", "two"].map(async (name) => (await t.data("ratelimit.createNamespace", { name })).namespaceId),
  );
  for (const [index, { key }] of apis.entries()) {
    for (let call = 0; call <= index; call++) await t.data("keys.verifyKey", { key, tags: [`index=${index}`] });
  }
  for (let call = 0; call < 3; call++) await limit("one");
  await limit("two");
  const stranger = await t.makeWorkspace();
  const theirs = await anApi(stranger.rootKey);
  await t.data("keys.verifyKey", { key: theirs.key }, { rootKey: stranger.rootKey });
  await t.ingest();
});
afterAll(() => t.close());

async function anApi(rootKey = t.workspace.rootKey) {
  const { apiId } = await t.data("apis.createApi", { name: "measured" }, { rootKey });
  return { apiId, ...(await t.data("keys.createKey", { apiId }, { rootKey })) };
}

const limit = (namespace: string) =>
  t.data("ratelimit.limit", { namespace, identifier: "somebody", limit: 2, duration: HOUR_MS });

const failure = ({ status, body }: Reply) => [status, body.error.type.split("/").at(-1)];

describe("keySpaceOf", () => {
  const counted = (condition: string, rootKey = t.workspace.rootKey) =>
    t.data(
      VERIFICATIONS,
      { query: `SELECT sum(count) AS n FROM key_verifications_per_day_v1 WHERE ${condition}` },
      { rootKey },
    );

  test("keySpaceOf resolves an API id case-insensitively, alone and in a list", async () => {
    const [first, second] = apis.map(({ apiId }) => apiId);
    expect(await counted(`key_space_id = keySpaceOf('${first}')`)).toEqual([{ n: 1 }]);
    expect(await counted(`KEYSPACEOF('${second}') = key_space_id`)).toEqual([{ n: 2 }]);
    expect(await counted(`has([keySpaceOf('${first}'), keySpaceOf('${second}')], key_space_id)`)).toEqual([{ n: 3 }]);
    const query = `SELECT key_space_id AS id, keySpaceOf('${second}') AS same FROM key_verifications_v1
                    WHERE key_id = '${apis[1]?.keyId}' LIMIT 1`;
    const [row] = await t.data(VERIFICATIONS, { query });
    expect(row.id).toMatch(/^ks_/);
    expect(row.same).toBe(row.id);
  });

  test("keySpaceOf matches no key space for an API that is missing, unreadable or of another workspace", async () => {
    const [first, second] = apis.map(({ apiId }) => apiId);
    const { rootKey } = await t.makeWorkspace();
    const mine = await anApi(rootKey);
    const spaceOf = async (apiId = "", of = t.workspace.rootKey) => {
      const query = `SELECT keySpaceOf('${apiId}') AS id, count() AS n FROM key_verifications_v1`;
      return (await t.data(VERIFICATIONS, { query }, { rootKey: of }))[0].id;
    };
    for (const apiId of ["api_absent", "", "\\0", mine.apiId, "x\\'; --"]) expect(await spaceOf(apiId)).toBe("");
    const scoped = await t.rootKey([`api.${first}.read_analytics`]);
    expect(await spaceOf(first, scoped)).toMatch(/^ks_/);
    expect(await spaceOf(second, scoped)).toBe("");
  });

  test.each([
    "keySpaceOf()",
    "keySpaceOf(key_id)",
    "keySpaceOf('a', 'b')",
    "keySpaceOf(concat('a', 'b'))",
    "keySpaceOf(DISTINCT 'a')",
  ])("keySpaceOf accepts only a literal: %s", async (call) => {
    const reply = await t.call(VERIFICATIONS, { query: `SELECT ${call} FROM key_verifications_v1` });
    expect(failure(reply)).toEqual([400, "invalid_analytics_query"]);
    expect(reply.body.error.detail).toContain("Line 1, column 8: keySpaceOf takes the id of an API");
  });
});

describe("analytics of verifications", () => {
  test("analytics.getVerifications reads verifications from raw and aggregated tables", async () => {
    const [first, second] = apis;
    const raw = "SELECT key_id, outcome, tags, source, app_id FROM key_verifications_v1 ORDER BY tags, time";
    expect(await t.data(VERIFICATIONS, { query: raw })).toEqual([
      { key_id: first?.keyId, outcome: "VALID", tags: ["index=0"], source: "api", app_id: "" },
      { key_id: second?.keyId, outcome: "VALID", tags: ["index=1"], source: "api", app_id: "" },
      { key_id: second?.keyId, outcome: "VALID", tags: ["index=1"], source: "api", app_id: "" },
    ]);
    for (const unit of ["minute", "hour", "day", "month"]) {
      const query = `SELECT key_id, sum(count) AS total FROM key_verifications_per_${unit}_v1 GROUP BY key_id ORDER BY total`;
      expect(await t.data(VERIFICATIONS, { query })).toEqual([
        { key_id: first?.keyId, total: 1 },
        { key_id: second?.keyId, total: 2 },
      ]);
    }
  });

  test("analytics.getVerifications returns row objects with the query's columns in order", async () => {
    const query = 'SELECT count() AS "the count", 1 AS B, 2 AS a, 0/0 AS nothing, now() AS n FROM key_verifications_v1';
    const reply = await t.call(VERIFICATIONS, { query });
    expect(reply.body).toEqual({
      data: [
        { "the count": 3, B: 1, a: 2, nothing: null, n: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) },
      ],
      meta: { requestId: expect.stringMatching(/^req_/) },
    });
    expect(Object.keys(reply.body.data[0])).toEqual(["the count", "B", "a", "nothing", "n"]);
    expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
  });

  test("analytics queries read rate limit decisions", async () => {
    const query =
      "SELECT namespace_id, passed, count() AS n FROM ratelimits_v1 GROUP BY namespace_id, passed ORDER BY n DESC, passed";
    expect(await t.data(RATELIMITS, { query: `${query}, namespace_id` })).toEqual(
      expect.arrayContaining([
        { namespace_id: namespaces[0], passed: true, n: 2 },
        { namespace_id: namespaces[0], passed: false, n: 1 },
        { namespace_id: namespaces[1], passed: true, n: 1 },
      ]),
    );
    const hourly = "SELECT sum(total) AS total, sum(passed) AS passed FROM ratelimits_per_hour_v1";
    expect(await t.data(RATELIMITS, { query: hourly })).toEqual([{ total: 4, passed: 3 }]);
  });

  test("analytics.getVerifications ignores unknown members and requires a query", async () => {
    const query = "SELECT count() AS n FROM key_verifications_v1";
    expect(await t.data(VERIFICATIONS, { query, page: 2 })).toEqual([{ n: 3 }]);
    expect(failure(await t.call(VERIFICATIONS, {}))).toEqual([400, "invalid_input"]);
    expect(failure(await t.call(VERIFICATIONS, { query: 1 }))).toEqual([400, "invalid_input"]);
  });
});

describe("data that a root key may query", () => {
  const query = "SELECT count() AS n FROM key_verifications_v1";
  const count = async (permissions: readonly string[]) =>
    (await t.data(VERIFICATIONS, { query }, { rootKey: await t.rootKey(permissions) }))[0].n;

  test("analytics queries cover the whole workspace or the permitted APIs", async () => {
    const [first, second] = apis.map(({ apiId }) => `api.${apiId}.read_analytics`);
    expect(await count(["api.*.read_analytics"])).toBe(3);
    expect(await count([first ?? ""])).toBe(1);
    expect(await count([first ?? "", second ?? "", "api.*.read_api"])).toBe(3);
  });

  test("analytics queries return no data of APIs that are deleted, missing or of another workspace", async () => {
    const stranger = await t.makeWorkspace();
    const theirs = await anApi(stranger.rootKey);
    const deleted = await anApi();
    await t.data("keys.verifyKey", { key: deleted.key });
    await t.ingest();
    const held = [deleted, theirs, { apiId: "api_missing" }].map(({ apiId }) => `api.${apiId}.read_analytics`);
    expect(await count(held)).toBe(1);
    await t.data("apis.deleteApi", { apiId: deleted.apiId });
    expect(await count(held)).toBe(0);
    const rows = { query: "SELECT * FROM key_verifications_per_hour_v1 LIMIT 5" };
    expect(await t.data(VERIFICATIONS, rows, { rootKey: await t.rootKey(held) })).toEqual([]);
    await t.deps.db.query("delete from verification_events where key_id = $1", [deleted.keyId]);
  });

  test("analytics queries of rate limits are restricted by namespace permission", async () => {
    const rootKey = await t.rootKey([`ratelimit.${namespaces[1]}.read_analytics`, "api.*.read_analytics"]);
    const ratelimits = { query: "SELECT count() AS n FROM ratelimits_v1" };
    expect(await t.data(RATELIMITS, ratelimits, { rootKey })).toEqual([{ n: 1 }]);
    const none = await t.rootKey(["ratelimit.rlns_missing.read_analytics"]);
    expect(await t.data(RATELIMITS, ratelimits, { rootKey: none })).toEqual([{ n: 0 }]);
  });

  test("analytics query without permission gets 403 before the query is parsed", async () => {
    const rootKey = await t.rootKey(["api.*.read_api", "ratelimit.*.read_analytics", "*", "api.*.*"]);
    const reply = await t.call(VERIFICATIONS, { query: "DROP TABLE keys" }, { rootKey });
    expect(failure(reply)).toEqual([403, "forbidden"]);
    expect(reply.body.error.detail).toContain("api.*.read_analytics");
  });
});

describe("a rejected query", () => {
  test.each([
    { query: "", kind: "invalid_analytics_query" },
    { query: "SELECT 1 FROM key_verifications_v1 SETTINGS max_threads = 1", kind: "invalid_analytics_query" },
    { query: "INSERT INTO key_verifications_v1 VALUES (1)", kind: "invalid_analytics_query_type" },
    { query: "SELECT * FROM system.tables", kind: "invalid_analytics_table" },
    { query: "SELECT * FROM ratelimits_v1", kind: "invalid_analytics_table" },
    { query: "SELECT sleep(1) FROM key_verifications_v1", kind: "invalid_analytics_function" },
    { query: "SELECT nope FROM key_verifications_v1", kind: "invalid_analytics_query" },
    { query: "SELECT count() FROM key_verifications_v1 WHERE time >= 1000", kind: "query_range_exceeds_retention" },
  ])("analytics query $query gets $kind with a position, without charging the quota", async ({ query, kind }) => {
    const { id, rootKey } = await t.makeWorkspace();
    await t.deps.db.query("insert into analytics_settings (workspace_id, queries_per_hour) values ($1, 1)", [id]);
    for (let call = 0; call < 2; call++) {
      const reply = await t.call(VERIFICATIONS, { query }, { rootKey });
      expect(failure(reply)).toEqual([400, kind]);
      expect(reply.body.error.detail).toMatch(/^Line 1, column \d+: /);
      expect(reply.body.error.errors).toEqual([{ location: "body.query", message: reply.body.error.detail }]);
    }
    const allowed = { query: "SELECT count() AS n FROM key_verifications_v1" };
    expect((await t.call(VERIFICATIONS, allowed, { rootKey })).status).toBe(200);
    expect(failure(await t.call(VERIFICATIONS, allowed, { rootKey }))).toEqual([429, "query_quota_exceeded"]);
  });

  test("analytics query length is limited to 16,384 bytes", async () => {
    const padded = (bytes: number, filler: string) => {
      const query = "SELECT count() AS n FROM key_verifications_v1 -- ";
      return query + filler.repeat((bytes - query.length) / Buffer.byteLength(filler));
    };
    const at = 16_384 - ((16_384 - "SELECT count() AS n FROM key_verifications_v1 -- ".length) % 2);
    expect((await t.call(VERIFICATIONS, { query: padded(16_384, "x") })).status).toBe(200);
    expect((await t.call(VERIFICATIONS, { query: padded(at, "ä") })).status).toBe(200);
    expect(failure(await t.call(VERIFICATIONS, { query: padded(16_385, "x") }))).toEqual([
      400,
      "invalid_analytics_query",
    ]);
    expect(failure(await t.call(VERIFICATIONS, { query: padded(at + 2, "ä") }))).toEqual([
      400,
      "invalid_analytics_query",
    ]);
  });
});

describe("the limits of a workspace", () => {
  const query = "SELECT key_id FROM key_verifications_v1";

  async function limited(settings: Readonly<Record<string, number | boolean>>): Promise<Workspace> {
    const workspace = await t.makeWorkspace();
    const names = Object.keys(settings);
    await t.deps.db.query(
      `insert into analytics_settings (workspace_id, ${names.join(", ")})
       values ($1, ${names.map((_, index) => `$${index + 2}`).join(", ")})`,
      [workspace.id, ...Object.values(settings)],
    );
    const { key } = await anApi(workspace.rootKey);
    for (let call = 0; call < 4; call++) await t.data("keys.verifyKey", { key }, { rootKey: workspace.rootKey });
    await t.ingest();
    return workspace;
  }

  test("analytics result is truncated at the row limit, but subqueries are not", async () => {
    const { rootKey } = await limited({ rows_max: 2 });
    expect(await t.data(VERIFICATIONS, { query }, { rootKey })).toHaveLength(2);
    const nested = `SELECT count() AS n FROM (${query})`;
    expect(await t.data(VERIFICATIONS, { query: nested }, { rootKey })).toEqual([{ n: 4 }]);
  });

  test("analytics query limits apply from the next query", async () => {
    const { id, rootKey } = await limited({ rows_max: 2 });
    await t.deps.db.query("update analytics_settings set rows_max = 3 where workspace_id = $1", [id]);
    expect(await t.data(VERIFICATIONS, { query }, { rootKey })).toHaveLength(3);
  });

  test("analytics query limits apply to result size and run time", async () => {
    const { rootKey } = await limited({ response_bytes_max: 1_048_576, timeout_ms: 1_000 });
    const joined = (tables: number): string =>
      Array.from({ length: tables }, (_, at) => `key_verifications_v1 AS t${at}`).join(" CROSS JOIN ");
    const columns = Array.from({ length: 60 }, (_, at) => `t0.time AS c${at}_${"x".repeat(180)}`).join(", ");
    const large = { query: `SELECT ${columns} FROM ${joined(4)}` };
    expect(failure(await t.call(VERIFICATIONS, large, { rootKey }))).toEqual([422, "query_memory_limit_exceeded"]);
    const slow = { query: `SELECT count() AS n FROM ${joined(15)}` };
    expect(failure(await t.call(VERIFICATIONS, slow, { rootKey }))).toEqual([422, "query_execution_timeout"]);
  });

  test("analytics query gets 412 before it is parsed if analytics are disabled", async () => {
    const { rootKey } = await limited({ enabled: false });
    const reply = await t.call(VERIFICATIONS, { query: "DROP TABLE keys" }, { rootKey });
    expect(failure(reply)).toEqual([412, "analytics_not_configured"]);
    const stranger = await t.rootKey([], { workspaceId: (await limited({ enabled: false })).id });
    expect(failure(await t.call(VERIFICATIONS, { query }, { rootKey: stranger }))).toEqual([403, "forbidden"]);
  });

  test("analytics quota responds 429 with Retry-After and charges query time", async () => {
    const { rootKey } = await limited({ queries_per_hour: 2 });
    for (let call = 0; call < 2; call++) await t.data(VERIFICATIONS, { query }, { rootKey });
    const reply = await t.call(VERIFICATIONS, { query }, { rootKey });
    expect(failure(reply)).toEqual([429, "query_quota_exceeded"]);
    expect(Number(reply.headers["retry-after"])).toBeGreaterThan(0);
    const timed = await limited({ run_ms_per_hour: 1 });
    await t.data(VERIFICATIONS, { query }, { rootKey: timed.rootKey });
    const later = await t.call(VERIFICATIONS, { query }, { rootKey: timed.rootKey });
    expect(later.body.error?.detail).toContain("0.001 seconds of run time per hour");
  });

  test("analytics retention hides older events and rejects queries for them", async () => {
    const { id, rootKey } = await limited({ verifications_days: 1 });
    const count = async () =>
      (await t.data(VERIFICATIONS, { query: `SELECT count() AS n FROM (${query})` }, { rootKey }))[0].n;
    expect(await count()).toBe(4);
    await t.deps.db.query("update verification_events set time = time - $2 where workspace_id = $1", [
      id,
      25 * HOUR_MS,
    ]);
    expect(await count()).toBe(0);
    const since = (hours: number) => ({ query: `${query} WHERE time >= ${t.deps.nowMs() - hours * HOUR_MS}` });
    expect((await t.call(VERIFICATIONS, since(23), { rootKey })).status).toBe(200);
    expect(failure(await t.call(VERIFICATIONS, since(25), { rootKey }))).toEqual([
      400,
      "query_range_exceeds_retention",
    ]);
  });
});

describe("unavailable analytics database", () => {
  const query = { query: "SELECT count() AS n FROM key_verifications_v1" };

  test.each([
    { reason: "unavailable", status: 503, kind: "analytics_connection_failed" },
    { reason: "timeout", status: 422, kind: "query_execution_timeout" },
    { reason: "rows", status: 422, kind: "query_rows_limit_exceeded" },
    { reason: "notConfigured", status: 412, kind: "analytics_not_configured" },
  ] as const)(
    "analytics database error $reason causes $status $kind and is counted",
    async ({ reason, status, kind }) => {
      const counted = async () =>
        (await metrics.getSingleMetric("postern_analytics_queries_total")?.get())?.values.find(
          ({ labels }) => labels.outcome === kind,
        )?.value ?? 0;
      const before = await counted();
      broken = new QueryRejected(reason, "connect ECONNREFUSED 10.0.0.7");
      const reply = await t.call(VERIFICATIONS, query);
      broken = undefined;
      expect(failure(reply)).toEqual([status, kind]);
      if (reason === "unavailable") expect(JSON.stringify(reply.body)).not.toContain("10.0.0.7");
      expect(await counted()).toBe(before + 1);
    },
  );

  test("analytics database receives no text from the caller's query", async () => {
    const told = "SELECT count() AS told_name FROM key_verifications_v1 WHERE key_id = 'told value' -- told comment";
    await t.data(VERIFICATIONS, { query: told });
    expect(queries.at(-1)).not.toContain("told");
  });

  test("analytics query duration is measured for successful queries", async () => {
    await t.data(VERIFICATIONS, query);
    expect(await metrics.metrics()).toMatch(/postern_analytics_query_duration_seconds_count [1-9]/);
    expect(await metrics.metrics()).toMatch(/postern_analytics_queries_total\{outcome="answered"\} [1-9]/);
  });
});
