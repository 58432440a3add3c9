import { afterAll, beforeAll, expect, test } from "vitest";
import { PublicError } from "../../../core/errors.ts";
import { type Counters, CountersUnavailable } from "../../../edge/counters/contract.ts";
import { createMemoryEdge, openRedisEdge } from "../../../edge/open.ts";
import { createTestRedis } from "../../../test/harness/redis.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { chargeQuery, chargeRunTime } from "./quota.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;
const LIMITS = { queriesPerHour: 3, runMsPerHour: 10_000 };

/** Counters in this process, with a clock that starts with an hour. */
function aReplica() {
  const clock = { ms: 1000 * HOUR_MS };
  const edge = createMemoryEdge({ nowMs: () => clock.ms });
  return { clock, deps: { ...t.deps, counters: edge.counters({ timeoutMs: 1000 }) } };
}

const refusalOf = (charging: Promise<void>): Promise<PublicError> =>
  charging.then(
    () => Promise.reject(new Error("it was not refused")),
    (error: unknown) => (error instanceof PublicError ? error : Promise.reject(error)),
  );

test("analytics quota admits the configured number of queries, then responds 429 with Retry-After", async () => {
  const { clock, deps } = aReplica();
  const of = { workspaceId: "ws_1", limits: LIMITS };
  for (let query = 0; query < 3; query++) await chargeQuery(deps, of);
  const refused = await refusalOf(chargeQuery(deps, of));
  expect([refused.kind, refused.detail]).toEqual([
    "query_quota_exceeded",
    "The workspace has used up its 3 analytics queries per hour.",
  ]);
  const retryAfterS = Number(refused.headers["Retry-After"]);
  clock.ms += (retryAfterS - 1) * 1000 - 1;
  await refusalOf(chargeQuery(deps, of));
  clock.ms += 1001;
  await chargeQuery(deps, of);
});

test("analytics quota is separate per workspace, and an increase applies immediately", async () => {
  const { deps } = aReplica();
  const of = { workspaceId: "ws_1", limits: { ...LIMITS, queriesPerHour: 1 } };
  await chargeQuery(deps, of);
  await refusalOf(chargeQuery(deps, of));
  await chargeQuery(deps, { ...of, workspaceId: "ws_2" });
  await chargeQuery(deps, { ...of, limits: LIMITS });
});

test("analytics quota charges the full runtime of a query, even if it exceeds the remaining quota", async () => {
  const { clock, deps } = aReplica();
  const of = { workspaceId: "ws_1", limits: { queriesPerHour: 1_000_000, runMsPerHour: 10_000 } };
  await chargeQuery(deps, of);
  await chargeRunTime(deps, { workspaceId: "ws_1", tookMs: 9_998.2 });
  // 9,999 ms are used.
  await chargeQuery(deps, of);
  await chargeRunTime(deps, { workspaceId: "ws_1", tookMs: 20_000 });
  const refused = await refusalOf(chargeQuery(deps, of));
  expect(refused.detail).toBe(
    "The workspace has used up the 10 seconds of run time per hour for its analytics queries.",
  );
  // 29,999 ms of the former hour count two thirds after a third of this one.
  clock.ms += HOUR_MS + HOUR_MS / 3;
  await refusalOf(chargeQuery(deps, of));
  clock.ms += HOUR_MS / 2;
  await chargeQuery(deps, of);
});

test("query that the run time quota rejects does not count against the number of queries", async () => {
  const { deps } = aReplica();
  const of = { workspaceId: "ws_1", limits: { queriesPerHour: 2, runMsPerHour: 1 } };
  await chargeQuery(deps, of);
  await refusalOf(chargeQuery(deps, of));
  await chargeQuery(deps, { ...of, limits: { queriesPerHour: 2, runMsPerHour: 2 } });
});

test("analytics quota of 0 rejects every query with Retry-After", async () => {
  const { deps } = aReplica();
  for (const limits of [
    { ...LIMITS, queriesPerHour: 0 },
    { ...LIMITS, runMsPerHour: 0 },
  ]) {
    const refused = await refusalOf(chargeQuery(deps, { workspaceId: "ws_1", limits }));
    expect(refused.headers["Retry-After"]).toBe("3600");
  }
});

test("analytics quota is shared by all replicas", async () => {
  const { url, prefix, close } = await createTestRedis();
  const edges = await Promise.all(
    ["one", "two"].map((clientName) => openRedisEdge({ url, prefix: prefix.slice(0, -1), clientName })),
  );
  try {
    const replicas = edges.map((edge) => ({ ...t.deps, counters: edge.counters({ timeoutMs: 5000 }) }));
    const of = { workspaceId: "ws_1", limits: { queriesPerHour: 10, runMsPerHour: 1_000_000 } };
    const asked = Array.from({ length: 30 }, (_, query) => chargeQuery(replicas[query % 2] ?? t.deps, of));
    const passed = (await Promise.allSettled(asked)).filter(({ status }) => status === "fulfilled");
    expect(passed).toHaveLength(10);
    const [one, two] = replicas;
    if (one === undefined || two === undefined) throw new Error("there are two");
    await chargeRunTime(one, { workspaceId: "ws_2", tookMs: 1_000_001 });
    await refusalOf(chargeQuery(two, { workspaceId: "ws_2", limits: of.limits }));
  } finally {
    await Promise.all(edges.map((edge) => edge.close()));
    await close();
  }
});

test("analytics quota is counted per replica while counters are unavailable", async () => {
  const { deps: local } = aReplica();
  const counters: Counters = {
    consume: (request) =>
      request.limits.every(({ accuracy }) => accuracy === "local")
        ? local.counters.consume(request)
        : Promise.reject(new CountersUnavailable("away")),
    close: async () => {},
  };
  const deps = { ...t.deps, counters };
  const of = { workspaceId: "ws_1", limits: LIMITS };
  for (let query = 0; query < 3; query++) await chargeQuery(deps, of);
  await refusalOf(chargeQuery(deps, of));
});
