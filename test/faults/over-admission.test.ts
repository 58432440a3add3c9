import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { aPolicy, aRule, call, POLICY, Records, startApp, type TestApp, WORKSPACE, withKey } from "../harness/gate.ts";
import { type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { type SidecarProcess, spawnSidecar, spawnUnready } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

/* Three gates and a killed Redis: how much they admit together and report (docs/operations/failure-modes.md, "Redis"). */

const HOUR = 3_600_000;
const LIMIT = 30;
const PODS = 3;
const BEFORE = 10;

let redis: OwnRedis;
let edge: Edge;
let app: TestApp;
let records: Records;
let beat: NodeJS.Timeout;
let gates: SidecarProcess[] = [];

beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  // Appends are synced before the reply, so that counted amounts survive a kill.
  redis = await startOwnRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
  edge = await openRedisEdge({ url: redis.url, clientName: "test-relay" });
  await waitFor("the store to be there", () => edge.ping().then(() => true));
  records = new Records(edge);
  await records.begin();
  await records.complete();
  beat = setInterval(() => void records.heartbeat().catch(() => undefined), 300);
});
afterEach(async () => {
  clearInterval(beat);
  await Promise.all(gates.map(({ process }) => process.stop()));
  gates = [];
  await edge.close();
  await redis.stop();
});

const guarded = (accuracy: "strict" | "local", onCounterFailure: CompiledPolicy["onCounterFailure"]) =>
  aPolicy({
    rules: [
      aRule({
        ratelimits: [
          {
            scope: { kind: "name", name: "all" },
            identifier: "key",
            limit: LIMIT,
            durationMs: HOUR,
            cost: 1,
            accuracy,
          },
        ],
      }),
    ],
    onCounterFailure,
  });

const envOf = (pod: number) => ({
  REDIS_URL: redis.url,
  POSTERN_WORKSPACE: WORKSPACE,
  POSTERN_POLICY: POLICY,
  POSTERN_UPSTREAM: app.url,
  POSTERN_POD: `pod-${pod}`,
});

/** Starts the gates. Returns keys older than the gates, because a gate does not cache a key that is announced while the gate reads it. */
async function startGates(policy: CompiledPolicy, pods = PODS): Promise<string[]> {
  await records.putPolicy(policy);
  const keys = await Promise.all(Array.from({ length: 20 }, () => records.putKey()));
  gates = await Promise.all([...Array(pods).keys()].map((pod) => spawnSidecar(envOf(pod))));
  return keys;
}

/**
 * Sends a request to each gate, and `more` to the first, with one key after another. Returns the first key of which Redis has counted all
 * requests, because a starved gate counts a request itself.
 */
async function countedKey(keys: readonly string[], more = 0): Promise<string> {
  const requested = [...gates, ...Array<SidecarProcess>(more).fill(gates[0] as SidecarProcess)];
  for (const key of keys) if (await areCounted(requested, key)) return key;
  throw new Error(`for each of ${keys.length} keys, a gate counted a request itself`);
}

async function areCounted(requested: readonly SidecarProcess[], key: string): Promise<boolean> {
  for (const [i, { port }] of requested.entries()) {
    const { status, headers, body } = await call(port, withKey(key));
    expect(status, body).toBe(200);
    if (headers["ratelimit-remaining"] !== String(LIMIT - 1 - i)) return false;
  }
  return true;
}

/** Returns the number of admitted requests. */
async function admitted({ port }: SidecarProcess, key: string, requests: number): Promise<number> {
  let passed = 0;
  for (let i = 0; i < requests; i++) {
    const { status, body } = await call(port, withKey(key));
    expect([200, 429], body).toContain(status);
    if (status === 200) passed += 1;
  }
  return passed;
}

async function metric({ adminPort }: SidecarProcess, series: string): Promise<number> {
  const { body } = await call(adminPort, { path: "/metrics" });
  return Number(
    body
      .split("\n")
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? Number.NaN,
  );
}
const sumOf = async (series: string): Promise<number> =>
  (await Promise.all(gates.map((gate) => metric(gate, series)))).reduce((sum, value) => sum + value, 0);

/** Waits until each gate knows this number of pods. */
async function allKnowOf(pods: number): Promise<void> {
  for (const gate of gates) {
    const knows = async () => (await metric(gate, "postern_sidecar_pods_alive")) === pods;
    await waitFor(`a gate to know of ${pods} pods`, knows, { deadlineMs: 40_000 });
  }
}

/** Waits if the current window would end during the test and admit more requests. */
const enoughOfTheHour = () =>
  waitFor("a window with time left", () => Date.now() % HOUR < HOUR - 60_000, { deadlineMs: 70_000 });

test.each([
  { onCounterFailure: "LocalShare", perPod: LIMIT / PODS },
  { onCounterFailure: "Local", perPod: LIMIT },
] as const)(
  "three gates without Redis admit $perPod each with onCounterFailure $onCounterFailure, and report the excess",
  async ({ onCounterFailure, perPod }) => {
    await enoughOfTheHour();
    const key = await countedKey(await startGates(guarded("strict", onCounterFailure)), BEFORE - PODS);
    await allKnowOf(PODS);
    await redis.kill("SIGKILL");
    const alone = await Promise.all(gates.map((gate) => admitted(gate, key, LIMIT + 5)));
    expect(alone).toEqual(gates.map(() => perPod));
    const total = BEFORE + PODS * perPod;
    if (onCounterFailure === "LocalShare") expect(total).toBeLessThanOrEqual(2 * LIMIT);

    await redis.restart();
    const over = 'postern_sidecar_over_admitted_total{mode="outage"}';
    await waitFor("the overshoot to be known", async () => (await sumOf(over)) >= total - LIMIT, {
      deadlineMs: 20_000,
    });
    expect(await sumOf(over)).toBe(total - LIMIT);
    const shares = await Promise.all(
      gates.map((gate) => metric(gate, 'postern_sidecar_over_admitted_ratio_max{mode="outage"}')),
    );
    expect(Math.max(...shares)).toBeCloseTo((total - LIMIT) / LIMIT);
    // Returns the numbers that the policy status shows.
    const reported = async () => {
      const reports = await edge.pods.list({ workspaceId: WORKSPACE, policyId: POLICY });
      return (
        reports.reduce((sum, { overAdmitted }) => sum + (overAdmitted?.units ?? 0), 0) === total - LIMIT && reports
      );
    };
    const reports = await waitFor("the gates to report it", reported, { deadlineMs: 20_000 });
    expect(Math.max(...reports.map(({ overAdmitted }) => overAdmitted?.percent ?? 0))).toBe(
      Math.ceil((100 * (total - LIMIT)) / LIMIT),
    );
    for (const { overAdmitted, lastSeenMs } of reports) {
      if (overAdmitted === undefined) continue;
      expect(overAdmitted.lastMs).toBeGreaterThan(lastSeenMs - 60_000);
      expect(overAdmitted.lastMs).toBeLessThanOrEqual(lastSeenMs);
    }
    // The shared counters include everything, so the window is full for all gates.
    await waitFor("strict counting", async () => {
      const asked = await Promise.all(gates.map((gate) => admitted(gate, key, 1)));
      return asked.every((passed) => passed === 0);
    });
    // Another tenant and another key of this tenant are unaffected.
    expect(await admitted(gates[1] as SidecarProcess, await records.putKey(), 1)).toBe(1);
  },
  90_000,
);

test("limit share of a deleted pod goes to the remaining pods", async () => {
  await enoughOfTheHour();
  const key = await countedKey(await startGates(guarded("strict", "LocalShare")));
  await allKnowOf(PODS);
  const [gone, ...left] = gates;
  await gone?.process.stop();
  gates = left;
  await allKnowOf(2);
  await redis.kill("SIGKILL");
  expect(await Promise.all(left.map((gate) => admitted(gate, key, LIMIT)))).toEqual([LIMIT / 2, LIMIT / 2]);
}, 90_000);

test("over-admission of async limits by three gates is measured", async () => {
  await enoughOfTheHour();
  const [key = ""] = await startGates(guarded("local", "Local"));
  const passed = await Promise.all(gates.map((gate) => admitted(gate, key, LIMIT)));
  const total = passed.reduce((sum, each) => sum + each, 0);
  const over = 'postern_sidecar_over_admitted_total{mode="async"}';
  await waitFor("the overshoot to be known", async () => (await sumOf(over)) >= total - LIMIT);
  expect(await sumOf(over)).toBe(total - LIMIT);
}, 60_000);

test("single pod has the complete limit even without Redis", async () => {
  await enoughOfTheHour();
  const key = await countedKey(await startGates(guarded("strict", "LocalShare"), 1));
  await allKnowOf(1);
  await redis.kill("SIGKILL");
  expect(await admitted(gates[0] as SidecarProcess, key, LIMIT + 5)).toBe(LIMIT);
}, 90_000);

test("pod shares stay constant while Redis is unavailable and pods come and go", async () => {
  await enoughOfTheHour();
  const key = await countedKey(await startGates(guarded("strict", "LocalShare")));
  await allKnowOf(PODS);
  await redis.kill("SIGKILL");
  const [gone, ...left] = gates;
  const before = await admitted(gone as SidecarProcess, key, LIMIT);
  await gone?.process.stop();
  const late = await spawnUnready(envOf(PODS));
  gates = [...left, late];
  expect((await call(late.port, withKey(key))).status).toBe(503);
  const stayed = await Promise.all(left.map((gate) => admitted(gate, key, LIMIT)));
  expect([before, ...stayed]).toEqual([LIMIT / PODS, LIMIT / PODS, LIMIT / PODS]);
  // Together the pods admit at most the limit once more.
  expect(PODS + before + stayed.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(2 * LIMIT);
}, 90_000);

test("forged pod count keeps shares between one and the limit", async () => {
  await enoughOfTheHour();
  const key = await countedKey(await startGates(guarded("strict", "LocalShare")));
  await allKnowOf(PODS);
  const raw = new Redis(redis.url);
  const alive = new RedisKeys().podsAlive(WORKSPACE, POLICY);
  const forged = Array.from({ length: 1_000 }, (_, i) => [String(Date.now() + HOUR), `forged-${i}`]).flat();
  await raw.zadd(alive, ...forged);
  await allKnowOf(1_000 + PODS);
  // An invalid set is replaced, and the gates keep the last number until then.
  await raw.del(alive);
  await raw.set(alive, "no set");
  await allKnowOf(PODS);
  await raw.zadd(alive, ...forged);
  await allKnowOf(1_000 + PODS);
  raw.disconnect();
  await redis.kill("SIGKILL");
  const alone = await Promise.all(gates.map((gate) => admitted(gate, key, LIMIT)));
  expect(alone).toEqual(gates.map(() => 1));
}, 120_000);
