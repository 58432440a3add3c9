import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../test/harness/redis.ts";
import { type Edge, openRedisEdge } from "../open.ts";
import { RedisKeys } from "../redis/keys.ts";

/* Effects of a compromised pod that writes any report under any name. */

const REF = { workspaceId: "ws_1", policyId: "pol_1" };
const KEY = new RedisKeys().pods(REF.workspaceId, REF.policyId);

let own: OwnRedis;
let raw: Redis;
let edge: Edge;
beforeAll(async () => {
  own = await startOwnRedis();
  raw = new Redis(own.url);
  edge = await openRedisEdge({ url: own.url, clientName: "reports" });
});
afterAll(async () => {
  await edge.close();
  raw.disconnect();
  await own.stop();
});
beforeEach(async () => {
  await raw.del(KEY);
  await edge.pods.report({ ...REF, podId: "shop/honest", generation: 1, version: 2, stalenessMs: 3 });
});

const put = (podId: string, report: unknown) =>
  raw.hset(KEY, podId, `${Date.now()} ${typeof report === "string" ? report : JSON.stringify(report)}`);
const listed = async () => (await edge.pods.list(REF)).map(({ podId }) => podId);
const REPORT = { generation: 1, version: 2, stalenessMs: 3 };

test.each([
  { name: "a long report", podId: "bad", report: { ...REPORT, x: "x".repeat(10_000_000) } },
  { name: "a long name", podId: "bad".repeat(1000), report: REPORT },
  { name: "no JSON", podId: "bad", report: "{" },
  { name: "no report", podId: "bad", report: [] },
])("pod report list excludes $name and includes valid reports", async ({ podId, report }) => {
  await put(podId, report);
  expect(await listed()).toEqual(["shop/honest"]);
});

test.each([
  {
    name: "counts that are none",
    refusals: { sinceMs: 1, mode: "Audit", counts: [{ rule: 0, code: "VALID", count: -1 }] },
  },
  {
    name: "codes that are texts",
    refusals: { sinceMs: 1, mode: "Audit", counts: [{ rule: 0, code: "<b>", count: 1 }] },
  },
  {
    name: "rules that are none",
    refusals: { sinceMs: 1, mode: "Audit", counts: [{ rule: 1e9, code: "A", count: 1 }] },
  },
  { name: "another mode", refusals: { sinceMs: 1, mode: "Later", counts: [] } },
  { name: "no object", refusals: "many" },
])("pod report omits its invalid parts: $name", async ({ refusals }) => {
  await put("bad", { ...REPORT, refusals, release: "<script>", region: 7 });
  const [bad] = await edge.pods.list(REF);
  expect(bad).toMatchObject({ podId: "bad", ...REPORT });
  for (const member of ["refusals", "release", "region"]) expect(bad).not.toHaveProperty(member);
});

test.each([
  { name: "units that are none", overAdmitted: { units: -1, percent: 1, lastMs: 1 } },
  { name: "no whole percent", overAdmitted: { units: 1, percent: 0.5, lastMs: 1 } },
  { name: "no time", overAdmitted: { units: 1, percent: 1, lastMs: null } },
  { name: "no number", overAdmitted: { units: "1e999", percent: 1, lastMs: 1 } },
  { name: "a list", overAdmitted: [] },
])("pod report omits invalid over-admitted units: $name", async ({ overAdmitted }) => {
  await put("bad", { ...REPORT, overAdmitted });
  const [bad] = await edge.pods.list(REF);
  expect(bad).toMatchObject({ podId: "bad", ...REPORT });
  expect(bad).not.toHaveProperty("overAdmitted");
});

test.each([0, 65_536, 1.5, "8080", null])("pod report omits the invalid upstream port %j", async (upstreamPort) => {
  await put("bad", { ...REPORT, upstreamPort });
  const [bad] = await edge.pods.list(REF);
  expect(bad).toMatchObject({ podId: "bad", ...REPORT });
  expect(bad).not.toHaveProperty("upstreamPort");
});

test.each([
  { name: "a string", write: (key: string) => raw.set(key, "no hash") },
  { name: "a list", write: (key: string) => raw.rpush(key, "a") },
])("next pod report replaces an invalid value at the Redis key of the pod reports: $name", async ({ write }) => {
  const other = { ...REF, policyId: "pol_2" };
  await edge.pods.report({ ...other, podId: "shop/other", ...REPORT });
  await raw.del(KEY);
  await write(KEY);
  const [none, theirs] = await edge.pods.listEach([REF, other]);
  expect([none?.length, theirs?.length]).toEqual([0, 1]);
  await edge.pods.report({ ...REF, podId: "shop/honest", ...REPORT });
  expect(await listed()).toEqual(["shop/honest"]);
  const alive = new RedisKeys().podsAlive(REF.workspaceId, REF.policyId);
  await raw.del(alive);
  await write(alive);
  await expect(edge.pods.countAlive({ ...REF, podId: "shop/honest" })).rejects.toThrow("WRONGTYPE");
  expect(await edge.pods.countAlive({ ...REF, podId: "shop/honest" })).toBe(1);
});

test("pod that stopped reporting is listed as silent for ten minutes and does not count as alive", async () => {
  const ago = (ms: number) => raw.hset(KEY, `shop/${ms}`, `${Date.now() - ms} ${JSON.stringify(REPORT)}`);
  for (const ms of [10_000, 20_000, 580_000, 610_000]) await ago(ms);
  const found = (await edge.pods.list(REF)).map(({ podId, isSilent }) => `${podId} ${isSilent}`);
  expect(found).toEqual(["shop/10000 false", "shop/20000 true", "shop/580000 true", "shop/honest false"]);
  expect(await raw.hexists(KEY, "shop/610000")).toBe(0);
  // The hash outlives the last report of its last pod.
  expect(await raw.pttl(KEY)).toBeGreaterThan(590_000);
  await edge.pods.remove({ ...REF, podId: "shop/20000" });
  expect(await listed()).not.toContain("shop/20000");
});

test("pod report list includes by how much limits were exceeded", async () => {
  const overAdmitted = { units: 40, percent: 134, lastMs: 1_700_000_000_000 };
  await edge.pods.report({ ...REF, podId: "shop/a", ...REPORT, overAdmitted });
  expect((await edge.pods.list(REF))[0]).toMatchObject({ podId: "shop/a", overAdmitted });
});

test("pod reports of newer versions keep the known members, and reports of older versions may lack some", async () => {
  const counts = [{ rule: 0, code: "LATER_CODE", count: 5, more: true }];
  await put("later", {
    ...REPORT,
    refusals: { sinceMs: 1, mode: "Audit", counts, byHour: [] },
    release: "9.0.0",
    mood: 1,
  });
  const reports = await edge.pods.list(REF);
  expect(reports[0]?.refusals).toEqual({
    sinceMs: 1,
    mode: "Audit",
    counts: [{ rule: 0, code: "LATER_CODE", count: 5 }],
    others: 0,
  });
  expect(reports[1]).not.toHaveProperty("refusals");
});

test("10,000 forged pod names do not hide genuine pod reports", async () => {
  const names = Array.from({ length: 12_000 }, (_, i) => [`forged-${i}`, `${Date.now()} ${JSON.stringify(REPORT)}`]);
  await raw.hset(KEY, ...names.flat());
  const startedMs = performance.now();
  expect((await listed()).length).toBeLessThanOrEqual(10_000);
  expect(performance.now() - startedMs).toBeLessThan(2_000);
});

test("reading forged pod reports stops at 8 MB", async () => {
  const longest = JSON.stringify({ ...REPORT, x: "x".repeat(8_000) });
  for (let at = 0; at < 3_000; at += 500) {
    const names = Array.from({ length: 500 }, (_, i) => [`forged-${at + i}`, `${Date.now()} ${longest}`]);
    await raw.hset(KEY, ...names.flat());
  }
  const before = await readBytes();
  expect((await listed()).length).toBeGreaterThan(500);
  expect((await readBytes()) - before).toBeLessThan(8_500_000);
});

test.each([
  { name: "a hundred thousand fields", fill: () => fill(100_000, (i) => [`f${i}`, "1 {}"]) },
  { name: "names of a hundred megabytes", fill: () => fill(1_000, (i) => [`${i}`.padEnd(100_000, "n"), "1 {}"]) },
  { name: "reports of a hundred megabytes", fill: () => fill(1_000, (i) => [`r${i}`, "r".repeat(100_000)]) },
])("pod reports delete $name without reading them, and valid reports reappear", async ({ fill }) => {
  await fill();
  const before = await readBytes();
  expect(await listed()).toEqual([]);
  expect((await readBytes()) - before).toBeLessThan(100_000);
  expect(await raw.exists(KEY)).toBe(0);
  await edge.pods.report({ ...REF, podId: "shop/honest", ...REPORT });
  expect(await listed()).toEqual(["shop/honest"]);
});

test("pod report is read only under the name of its own pod", async () => {
  const keys = new RedisKeys();
  const podId = "shop/own";
  const own = keys.podsOwn(REF.workspaceId, REF.policyId, podId);
  await raw.zadd(keys.podsIssued(REF.workspaceId, REF.policyId), Date.now() + 60_000, podId);
  await fill(30_000, (i) => [`shop/forged-${i}`, `${Date.now()} ${JSON.stringify(REPORT)}`], own);
  await raw.hset(own, podId, `${Date.now()} ${JSON.stringify(REPORT)}`);
  const before = await readBytes();
  expect(await listed()).toEqual(["shop/honest", podId]);
  expect((await readBytes()) - before).toBeLessThan(10_000);
  expect(await raw.hlen(own)).toBe(30_001);
  await raw.hset(own, podId, "x".repeat(10_000_000));
  expect(await listed()).toEqual(["shop/honest"]);
  await raw.del(keys.podsIssued(REF.workspaceId, REF.policyId), own);
});

async function fill(count: number, field: (i: number) => [string, string], key = KEY): Promise<void> {
  for (let at = 0; at < count; at += 200) {
    await raw.hset(key, ...Array.from({ length: Math.min(200, count - at) }, (_, i) => field(at + i)).flat());
  }
}

/** Returns the number of bytes that Redis has sent to all clients. */
const readBytes = async (): Promise<number> =>
  Number(/total_net_output_bytes:(\d+)/.exec(await raw.info("stats"))?.[1]);
