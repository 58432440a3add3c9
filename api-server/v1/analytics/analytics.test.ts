import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ClickhouseAnalytics } from "../../../analytics/clickhouse/store.ts";
import { type AnalyticsStore, QueryRejected } from "../../../analytics/contract.ts";
import { PostgresAnalytics } from "../../../analytics/postgres/store.ts";
import type { VerificationEvent } from "../../../edge/events/contract.ts";
import { createPool } from "../../../postgres/pool.ts";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

/*
 * What v1 tells of usage (api-v1.md sections 6 and 11). That the counts are right for any question is tested in test/contracts/analytics.
 */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ZEROS = {
  valid: 0,
  notFound: 0,
  forbidden: 0,
  usageExceeded: 0,
  rateLimited: 0,
  unauthorized: 0,
  disabled: 0,
  insufficientPermissions: 0,
  expired: 0,
  total: 0,
};

let t: TestApp;
/** A store that is asked instead. */
let other: Pick<AnalyticsStore, "countVerifications"> | undefined;
/** The start of an hour, 5 h ago. */
let hourMs: number;
let api: { readonly apiId: string; readonly keySpaceId: string };
let keys: readonly string[];
let identities: readonly { readonly id: string; readonly externalId: string }[];

beforeAll(async () => {
  t = await buildTestApp({
    deps: ({ analytics }) => ({
      analytics: {
        kind: analytics.kind,
        query: (query, run) => analytics.query(query, run),
        countLatencies: (question) => analytics.countLatencies(question),
        uncountedForMs: (workspaceId) => analytics.uncountedForMs(workspaceId),
        countVerifications: (question) => (other ?? analytics).countVerifications(question),
      },
    }),
  });
  hourMs = Math.floor(t.deps.nowMs() / HOUR_MS - 5) * HOUR_MS;
  api = await anApi();
  const made = [await aKey({ externalId: "user_b" }), await aKey({ externalId: "User.a" }), await aKey({})];
  keys = made.map(({ keyId }) => keyId);
  identities = await Promise.all(
    ["user_b", "User.a"].map(async (externalId) => ({
      id: (await t.data("identities.getIdentity", { identity: externalId })).id,
      externalId,
    })),
  );
  const [one = "", two = "", three = ""] = keys;
  const [first, second] = identities.map(({ id, externalId }) => ({ identityId: id, externalId }));
  use({ keyId: one, ...first, timeMs: hourMs, tags: ["b", "a"] });
  use({ keyId: one, ...first, timeMs: hourMs + HOUR_MS - 1, outcome: "RATE_LIMITED", tags: ["a"] });
  use({ keyId: two, ...second, timeMs: hourMs + HOUR_MS, outcome: "USAGE_EXCEEDED" });
  use({ keyId: three, timeMs: hourMs + 2 * HOUR_MS, tags: ["x,y"] });
  use({ keyId: three, timeMs: hourMs + 2 * HOUR_MS, outcome: "DISABLED" });
  use({ keyId: three, timeMs: hourMs + 2 * HOUR_MS, outcome: "OF_A_LATER_RELEASE" });
  // Of another API.
  use({ keyId: "key_of_another", keySpaceId: (await anApi()).keySpaceId, timeMs: hourMs });
  await t.ingest();
});
afterAll(() => t.close());

async function anApi() {
  const { apiId } = await t.data("apis.createApi", { name: "measured" });
  const { rows } = await t.deps.db.query("select key_space_id from apis where id = $1", [apiId]);
  return { apiId, keySpaceId: rows[0]?.key_space_id as string };
}

const aKey = (body: object): Promise<{ keyId: string; key: string }> =>
  t.data("keys.createKey", { apiId: api.apiId, ...body });

let events = 0;
function use(event: Partial<VerificationEvent> & { readonly keyId: string; readonly timeMs: number }): void {
  events += 1;
  t.edge.sink.add({
    type: "verification",
    id: `ev_${events}`,
    requestId: `req_${events}`,
    workspaceId: t.workspace.id,
    keySpaceId: api.keySpaceId,
    apiId: api.apiId,
    outcome: "VALID",
    tags: [],
    region: "",
    source: "sidecar",
    spentCredits: 0,
    latencyMs: 1,
    ...event,
  });
}

describe("analytics.getVerifications", () => {
  const window = () => ({ apiId: api.apiId, start: hourMs, end: hourMs + 3 * HOUR_MS });
  const ask = (query: object) => t.data("v1/analytics.getVerifications", { ...window(), ...query });

  test("v1 analytics.getVerifications without groupBy returns one datapoint for the window", async () => {
    const all = { ...ZEROS, valid: 2, rateLimited: 1, usageExceeded: 1, disabled: 1, total: 6 };
    expect(await ask({})).toEqual([all]);
    expect(await t.data("v1/analytics.getVerifications", { apiId: api.apiId })).toEqual([all]);
    const before = { start: hourMs - 2 * HOUR_MS, end: hourMs - 1 };
    expect(await ask(before)).toEqual([ZEROS]);
  });

  test("v1 analytics.getVerifications includes the complete hours of start and end", async () => {
    const total = async (start: number, end: number) => (await ask({ start, end }))[0].total;
    expect(await total(hourMs + 1000, hourMs + 2000)).toBe(2);
    expect(await total(hourMs + HOUR_MS - 1, hourMs + HOUR_MS)).toBe(3);
  });

  test("v1 analytics.getVerifications by hour returns every hour from start to end", async () => {
    const rows = await ask({ start: hourMs - 1, groupBy: "hour" });
    expect(rows.map(({ time, total }: { time: number; total: number }) => [(time - hourMs) / HOUR_MS, total])).toEqual([
      [-1, 0],
      [0, 2],
      [1, 1],
      [2, 3],
      [3, 0],
    ]);
    expect(rows[0]).toEqual({ ...ZEROS, time: hourMs - HOUR_MS });
  });

  test("v1 analytics.getVerifications with several time units uses the coarsest", async () => {
    const month = new Date(hourMs);
    const start = Date.UTC(month.getUTCFullYear(), month.getUTCMonth());
    const rows = await ask({ groupBy: ["hour,day", "month"], end: hourMs + 1 });
    expect(rows).toEqual([{ ...ZEROS, valid: 1, rateLimited: 1, total: 2, time: start }]);
  });

  test("v1 analytics.getVerifications by key, identity or tag returns the most used ones first", async () => {
    const [one, two, three] = keys;
    const totals = (rows: readonly { readonly total: number }[], of: (row: never) => unknown) =>
      rows.map((row) => [of(row as never), row.total]);
    expect(totals(await ask({ groupBy: "key" }), ({ keyId }: { keyId: string }) => keyId)).toEqual([
      [three, 3],
      [one, 2],
      [two, 1],
    ]);
    expect(totals(await ask({ groupBy: "identity" }), ({ identity }: { identity: object }) => identity)).toEqual([
      [identities[0], 2],
      [identities[1], 1],
    ]);
    expect(totals(await ask({ groupBy: "tags" }), ({ tags }: { tags: string[] }) => tags)).toEqual([
      [[], 3],
      [["a"], 1],
      [["a", "b"], 1],
      [["x,y"], 1],
    ]);
    expect(totals(await ask({ groupBy: "tag" }), ({ tag }: { tag: string }) => tag)).toEqual([
      ["a", 2],
      ["b", 1],
      ["x,y", 1],
    ]);
  });

  test("v1 analytics.getVerifications by time and key omits empty datapoints", async () => {
    const [one, two, three] = keys;
    const rows = await ask({ groupBy: "key,hour" });
    expect(rows.map(({ time, keyId }: { time: number; keyId: string }) => [(time - hourMs) / HOUR_MS, keyId])).toEqual([
      [0, one],
      [1, two],
      [2, three],
    ]);
  });

  test("v1 analytics.getVerifications accepts several keys and tags, and counts only verifications with all of the tags", async () => {
    const [one, two] = keys;
    const total = async (query: object) => (await ask(query))[0].total;
    expect(await total({ keyId: one })).toBe(2);
    expect(await total({ keyId: `${one},${two}` })).toBe(3);
    expect(await total({ keyId: [one, two] })).toBe(3);
    expect(await total({ keyId: "key_missing" })).toBe(0);
    expect(await total({ tag: "a" })).toBe(2);
    expect(await total({ tag: ["a", "b"] })).toBe(1);
    expect(await total({ tag: "x,y" })).toBe(1);
    expect(await total({ externalId: "User.a" })).toBe(1);
    expect(await total({ externalId: "user_b", tag: "b", keyId: one })).toBe(1);
  });

  test("v1 analytics.getVerifications applies orderBy and order before limit", async () => {
    const [one, two, three] = keys;
    const order = async (query: object) =>
      (await ask({ groupBy: "key", ...query })).map(({ keyId }: { keyId: string }) => keyId);
    expect(await order({ orderBy: "total" })).toEqual([two, one, three]);
    expect(await order({ orderBy: "total", order: "desc", limit: 1 })).toEqual([three]);
    expect(await order({ orderBy: "usageExceeded", order: "desc", limit: 1 })).toEqual([two]);
    // Without orderBy, order means nothing.
    expect(await order({ order: "asc", limit: 1 })).toEqual([three]);
    const hours = await ask({ groupBy: "hour", orderBy: "time", order: "desc", limit: 1 });
    expect(hours).toEqual([{ ...ZEROS, time: hourMs + 3 * HOUR_MS }]);
    expect(await ask({ groupBy: "hour", limit: 1 })).toMatchObject([{ time: hourMs, total: 2 }]);
  });

  test.each([
    { query: { groupBy: "tags,tag" }, says: "groupBy: expected tags or tag" },
    { query: { groupBy: "week" }, says: "groupBy: expected some of" },
    { query: { orderBy: "time" }, says: "orderBy: sorting by time requires a time unit" },
    { query: { orderBy: "count" }, says: "orderBy: " },
    { query: { start: 2, end: 2 }, says: "start: expected a time before end" },
    { query: { start: 1.5 }, says: "start: " },
    { query: { start: -1 }, says: "start: " },
    { query: { limit: 0 }, says: "limit: " },
    { query: { apiId: "" }, says: "apiId: " },
  ])("v1 analytics.getVerifications with $query gets 400 even without a root key", async ({ query, says }) => {
    const reply = await t.call("v1/analytics.getVerifications", { apiId: "api_1", ...query }, { rootKey: null });
    expect([reply.status, reply.body.error.code]).toEqual([400, "BAD_REQUEST"]);
    expect(reply.body.error.message).toMatch(new RegExp(`^${says}`));
  });

  test("v1 analytics.getVerifications ignores empty bounds and rejects a future start", async () => {
    expect(await ask({ start: null, end: null })).toHaveLength(1);
    const reply = await t.call("v1/analytics.getVerifications", { apiId: api.apiId, start: t.deps.nowMs() + HOUR_MS });
    expect(reply.status).toBe(400);
  });

  test("v1 analytics.getVerifications returns up to 10,000 hours", async () => {
    const end = hourMs;
    const start = end - 9_999 * HOUR_MS;
    expect(await ask({ start, end, groupBy: "hour" })).toHaveLength(10_000);
    const reply = await t.call("v1/analytics.getVerifications", {
      apiId: api.apiId,
      start: start - 1,
      end,
      groupBy: "hour",
    });
    expect(reply.status).toBe(400);
    expect(reply.body.error.message).toContain("10000");
  });

  test("v1 analytics.getVerifications checks for 403 before 404, and the API before the identity", async () => {
    const rootKey = await t.rootKey(["api.api_other.read_api"]);
    const codeOf = ({ status, body }: Reply) => [status, body.error.code, body.error.message];
    const path = "v1/analytics.getVerifications";
    expect(codeOf(await t.call(path, { apiId: "api_missing" }, { rootKey }))).toEqual([
      403,
      "INSUFFICIENT_PERMISSIONS",
      expect.stringContaining("api.api_missing.read_api"),
    ]);
    expect(codeOf(await t.call(path, { apiId: "api_missing", externalId: "nobody" }))).toEqual([
      404,
      "NOT_FOUND",
      expect.stringContaining("api_missing"),
    ]);
    expect((await t.call(path, { apiId: api.apiId, externalId: "nobody" })).status).toBe(404);
  });

  test("v1 analytics.getVerifications gets 412 while workspace analytics are disabled", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    const { apiId } = await t.data("apis.createApi", { name: "off" }, { rootKey });
    await t.deps.db.query("insert into analytics_settings (workspace_id, enabled) values ($1, false)", [id]);
    const reply = await t.call("v1/analytics.getVerifications", { apiId }, { rootKey });
    expect([reply.status, reply.body.error.code]).toEqual([412, "PRECONDITION_FAILED"]);
  });
});

describe("keys.getVerifications", () => {
  const day = () => Math.floor(hourMs / DAY_MS) * DAY_MS;

  test("v1 keys.getVerifications returns daily outcomes of a key or owner", async () => {
    const [one, two, three] = keys;
    const start = day();
    const ask = async (query: object) => (await t.data("v1/keys.getVerifications", { start, ...query })).verifications;
    const sum = (rows: readonly Record<string, number>[]) =>
      rows.reduce(
        ({ success = 0, rateLimited = 0, usageExceeded = 0 }, row) => ({
          success: success + (row.success ?? 0),
          rateLimited: rateLimited + (row.rateLimited ?? 0),
          usageExceeded: usageExceeded + (row.usageExceeded ?? 0),
        }),
        {},
      );
    const rows = await ask({ keyId: one });
    expect(rows[0].time).toBe(day());
    expect(sum(rows)).toEqual({ success: 1, rateLimited: 1, usageExceeded: 0 });
    // The events lie within three hours, which may be of two days.
    expect(rows.length).toBeLessThanOrEqual(2);
    expect(sum(await ask({ ownerId: "User.a" }))).toEqual({ success: 0, rateLimited: 0, usageExceeded: 1 });
    // The id wins.
    expect(sum(await ask({ keyId: three, ownerId: "User.a" }))).toEqual({
      success: 1,
      rateLimited: 0,
      usageExceeded: 0,
    });
    expect(await ask({ keyId: two, end: hourMs - 1, start: hourMs - HOUR_MS })).toEqual([]);
  });

  test("v1 keys.getVerifications covers the last 24 hours by default", async () => {
    const { verifications } = await t.data("v1/keys.getVerifications", { keyId: keys[0] });
    expect(verifications.length).toBeGreaterThan(0);
  });

  test("v1 keys.getVerifications omits days without any of the outcomes that it returns", async () => {
    const { keyId } = await aKey({});
    use({ keyId, timeMs: hourMs, outcome: "DISABLED" });
    await t.ingest();
    expect(await t.data("v1/keys.getVerifications", { keyId })).toEqual({ verifications: [] });
  });

  test("v1 keys.getVerifications returns 400 without a key or owner, 404 for an unknown one, and 403 without permission", async () => {
    const path = "v1/keys.getVerifications";
    expect((await t.call(path, {}, { rootKey: null })).status).toBe(400);
    expect((await t.call(path, { keyId: "key_missing" })).status).toBe(404);
    expect((await t.call(path, { ownerId: "nobody" })).status).toBe(404);
    const other = await t.data("keys.createKey", {
      apiId: (await anApi()).apiId,
      externalId: identities[0]?.externalId,
    });
    const rootKey = await t.rootKey([`api.${api.apiId}.read_key`]);
    expect((await t.call(path, { keyId: keys[0] }, { rootKey })).status).toBe(200);
    const refused = await t.call(path, { ownerId: identities[0]?.externalId }, { rootKey });
    expect([refused.status, refused.body.error.code]).toEqual([403, "INSUFFICIENT_PERMISSIONS"]);
    await t.data("keys.deleteKey", { keyId: other.keyId });
    expect((await t.call(path, { ownerId: identities[0]?.externalId }, { rootKey })).status).toBe(200);
  });
});

describe("unavailable analytics database", () => {
  const responds = async () => {
    const [keyId] = keys;
    const replies = [
      await t.call("v1/analytics.getVerifications", { apiId: api.apiId, groupBy: "key" }),
      await t.call("v1/keys.getVerifications", { keyId }),
    ];
    return replies.map(({ status, body }) => [status, body.error.code, body.error.message]);
  };
  afterEach(() => {
    other = undefined;
  });

  test.each(["Postgres", "ClickHouse"])(
    "v1 analytics gets 500 without the database address while %s is unavailable",
    async (name) => {
      const { log } = t.deps;
      const db = createPool("postgres://user:secret@127.0.0.1:1/db");
      const store =
        name === "Postgres"
          ? new PostgresAnalytics({ db, nowMs: t.deps.nowMs, log, metrics: new Registry() })
          : new ClickhouseAnalytics({
              url: "http://user:secret@127.0.0.1:1/db",
              db: t.deps.db,
              cluster: undefined,
              log,
            });
      onTestFinished(async () => {
        await store.close();
        await db.end();
      });
      other = store;
      const said = [500, "INTERNAL_SERVER_ERROR", "The analytics store does not respond; try again later."];
      expect(await responds()).toEqual([said, said]);
    },
  );

  test("v1 analytics query that times out gets 400 with advice", async () => {
    other = { countVerifications: () => Promise.reject(new QueryRejected("timeout", "internal words")) };
    const said = [
      400,
      "BAD_REQUEST",
      expect.stringMatching(/^The count exceeded its time limit. Request a shorter time range/),
    ];
    expect(await responds()).toEqual([said, said]);
  });
});

test("v1 analytics includes verifications by keys.verifyKey", async () => {
  const { keyId, key } = await aKey({});
  for (const tags of [["t=1"], []]) expect((await t.data("keys.verifyKey", { key, tags })).valid).toBe(true);
  await t.data("keys.updateKey", { keyId, enabled: false });
  expect((await t.data("keys.verifyKey", { key })).code).toBe("DISABLED");
  await t.ingest();
  const query = { apiId: api.apiId, keyId, groupBy: "key" };
  expect(await t.data("v1/analytics.getVerifications", query)).toEqual([
    { ...ZEROS, valid: 2, disabled: 1, total: 3, keyId },
  ]);
});
