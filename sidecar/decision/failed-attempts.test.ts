import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { createMemoryEdge, type Edge, openRedisEdge } from "../../edge/open.ts";
import {
  aPolicy,
  call,
  kindOf,
  openGate,
  POLICY,
  type TestGate,
  WORKSPACE,
  waitFor,
  withKey,
} from "../../test/harness/gate.ts";
import { createTestRedis, type OwnRedis, startOwnRedis, type TestRedis } from "../../test/harness/redis.ts";
import { type Attempt, FailedAttempts } from "./failed-attempts.ts";

const LIMIT = 20;
const GUESSER = "203.0.113.9";
const POLICY_CHANGES: Partial<CompiledPolicy> = {
  formatVersion: 2,
  clientAddress: { from: "forwardedFor", trustedProxies: ["127.0.0.0/8", "::1"] },
  failedAttempts: { limit: LIMIT, durationMs: 60_000 },
};

let guesses = 0;
const from = (gate: TestGate, address: string, key = `guess_${guesses++}`) =>
  call(gate.port, { path: "/", headers: { ...withKey(key).headers, "X-Forwarded-For": address } });
const statusFrom = async (gate: TestGate, address: string, key?: string) => (await from(gate, address, key)).status;

describe("failed attempts over several gates", () => {
  let redis: TestRedis;
  const gates: TestGate[] = [];
  beforeEach(async () => {
    redis = await createTestRedis();
    for (let pod = 0; pod < 4; pod++) {
      const edge = await openRedisEdge({ url: redis.url, prefix: redis.prefix, clientName: `gate-${pod}` });
      await waitFor("the edge to be connected", () => edge.ping().then(() => true));
      gates.push(await openGate({ edge, policy: POLICY_CHANGES, config: { podId: `pod-${pod}` } }));
    }
  });
  afterEach(async () => {
    for (const gate of gates.splice(0)) await gate.close();
    await redis.close();
  });

  test("guesses from one address get 429 across four gates, but a key that has already succeeded from that address does not", async () => {
    const [first, , , last] = gates as [TestGate, TestGate, TestGate, TestGate];
    const good = await first.records.putKey();
    const neverUsedThere = await first.records.putKey();
    expect(await statusFrom(first, GUESSER, good)).toBe(200);

    const codes: number[] = [];
    for (let round = 0; round < 10; round++) {
      for (const gate of gates) codes.push(await statusFrom(gate, GUESSER));
      // The totals of other gates arrive every 100 ms.
      await sleep(150);
    }
    const passed = codes.filter((code) => code === 401).length;
    expect(passed).toBeGreaterThanOrEqual(LIMIT);
    expect(passed).toBeLessThanOrEqual(LIMIT + gates.length);
    expect(codes.slice(-8)).toEqual(Array(8).fill(429));

    const rejected = await from(last, GUESSER);
    expect([rejected.status, kindOf(rejected)]).toEqual([429, "rate_limited"]);
    expect(Number(rejected.headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(rejected.headers["retry-after"])).toBeLessThanOrEqual(120);

    for (const gate of gates) expect(await statusFrom(gate, GUESSER, good)).toBe(200);
    expect(await statusFrom(last, GUESSER, neverUsedThere)).toBe(429);
    expect(await statusFrom(last, "203.0.113.10", neverUsedThere)).toBe(200);
    expect(await statusFrom(last, "203.0.113.10")).toBe(401);
  });
});

describe("failed attempts while Redis is down", () => {
  let redis: OwnRedis;
  const gates: TestGate[] = [];
  beforeEach(async () => {
    redis = await startOwnRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    for (let pod = 0; pod < 2; pod++) {
      const edge = await openRedisEdge({ url: redis.url, prefix: "ps", clientName: `gate-${pod}` });
      await waitFor("the edge to be connected", () => edge.ping().then(() => true));
      gates.push(await openGate({ edge, policy: POLICY_CHANGES, config: { podId: `pod-${pod}` } }));
    }
  });
  afterEach(async () => {
    for (const gate of gates.splice(0)) await gate.close();
    await redis.stop();
  });

  test("each gate counts failed attempts and successes alone while Redis is down, and gates share them again afterwards", async () => {
    const [first, second] = gates as [TestGate, TestGate];
    const disabled = await first.records.putKey({ enabled: false });
    const good = await first.records.putKey();
    const elsewhere = await first.records.putKey();
    // Both gates cache all keys, because they cannot look others up.
    for (const gate of gates) {
      for (const key of [disabled, good, elsewhere]) await statusFrom(gate, "192.0.2.1", key);
    }
    expect(await statusFrom(first, GUESSER, good)).toBe(200);
    await redis.kill("SIGKILL");
    expect(await statusFrom(second, GUESSER, elsewhere)).toBe(200);

    for (let at = 0; at < LIMIT; at++) expect(await statusFrom(first, GUESSER, disabled)).toBe(401);
    expect(await statusFrom(first, GUESSER, disabled)).toBe(429);
    expect(await statusFrom(first, GUESSER, good)).toBe(200);
    expect(await statusFrom(first, GUESSER, elsewhere)).toBe(429);
    expect(await statusFrom(second, GUESSER, disabled)).toBe(401);

    await redis.restart();
    await waitFor("the second gate to know the failures of the first", async () => {
      await first.records.heartbeat().catch(() => undefined);
      return (await statusFrom(second, GUESSER, disabled)) === 429;
    });
    await waitFor("the first gate to know the success at the second", async () => {
      return (await statusFrom(first, GUESSER, elsewhere)) === 200;
    });
    expect(await statusFrom(second, GUESSER, good)).toBe(200);
  });
});

describe("failed attempts at one gate", () => {
  let gate: TestGate;
  const open = async (changes: Partial<CompiledPolicy> = {}) => {
    gate = await openGate({ policy: { ...POLICY_CHANGES, ...changes } });
  };
  afterEach(() => gate.close());
  const exhaust = async (key?: string) => {
    for (let at = 0; at < LIMIT; at++) expect(await statusFrom(gate, GUESSER, key)).toBe(401);
  };

  test.each([
    { name: "a disabled key", changes: { enabled: false } },
    { name: "an expired key", changes: { expiresMs: 1 } },
  ])("requests with $name count as failed attempts", async ({ changes }) => {
    await open();
    await exhaust(await gate.records.putKey(changes));
    expect(await statusFrom(gate, GUESSER)).toBe(429);
    expect(await gate.metrics()).toMatch(/requests_total\{code="TOO_MANY_ATTEMPTS"\} 1/);
  });

  test("requests without a key and rejections of valid keys do not count as failed attempts", async () => {
    await open();
    const key = await gate.records.putKey();
    for (let at = 0; at < 2 * LIMIT; at++) {
      await call(gate.port, { path: "/", headers: { "X-Forwarded-For": GUESSER } });
    }
    expect(await statusFrom(gate, GUESSER, key)).toBe(200);
    expect(await statusFrom(gate, GUESSER)).toBe(401);
  });

  test("all addresses of an IPv6 network count as one client", async () => {
    await open();
    for (let at = 0; at < LIMIT; at++) expect(await statusFrom(gate, `2001:db8:0:1::${at + 1}`)).toBe(401);
    expect(await statusFrom(gate, "2001:db8:0:1:ffff::1")).toBe(429);
    expect(await statusFrom(gate, "2001:db8:0:2::1")).toBe(401);
  });

  test("untrusted client gets no further attempts by forging X-Forwarded-For", async () => {
    await open({ clientAddress: { from: "forwardedFor", trustedProxies: ["192.0.2.1"] } });
    for (let at = 0; at < LIMIT; at++) expect(await statusFrom(gate, `198.51.100.${at}`)).toBe(401);
    expect(await statusFrom(gate, "198.51.100.200")).toBe(429);
  });

  test("Audit mode admits failed attempts above the limit and counts them as audited rejections", async () => {
    await open({ mode: "Audit" });
    for (let at = 0; at < LIMIT + 5; at++) expect(await statusFrom(gate, GUESSER)).toBe(200);
    expect(await gate.metrics()).toMatch(/audited_rejections_total (?:2[5-9]|3\d)|audited\w*_total (?:2[5-9]|3\d)/);
  });

  test("policy without failedAttempts rejects no attempt", async () => {
    await open({ failedAttempts: undefined });
    for (let at = 0; at < 2 * LIMIT; at++) expect(await statusFrom(gate, GUESSER)).toBe(401);
  });
});

describe("lookups of successes in the store", () => {
  const nowMs = 1_800_000_000_000;
  const attempt = (hash: string): Attempt => ({
    active: {
      policy: aPolicy(POLICY_CHANGES),
      record: { policyId: POLICY, name: "", apiId: "", uid: "", generation: 1, version: 1, policy: {} },
    },
    address: GUESSER,
    hash,
  });

  function open(edge: Edge) {
    const counters = edge.counters({ timeoutMs: 1_000 });
    let lookups = 0;
    const attempts = new FailedAttempts({
      counters: {
        ...counters,
        peek: (limits) => {
          lookups += 1;
          return counters.peek(limits);
        },
      },
      workspaceId: WORKSPACE,
      nowMs: () => nowMs,
      onInternalError: (error) => {
        throw error;
      },
    });
    return { attempts, lookups: () => lookups };
  }

  test("flood of guesses causes at most 200 lookups per second", async () => {
    const { attempts, lookups } = open(createMemoryEdge({ nowMs: () => nowMs }));
    for (let at = 0; at < LIMIT; at++) attempts.record(attempt(`${at}`), "NOT_FOUND");
    for (let at = 0; at < 5_000; at++) expect(await attempts.check(attempt(`flood ${at}`))).toBeGreaterThan(0);
    expect(lookups()).toBe(200);
  });

  test("key that succeeded at another gate is exempt from the attempt limit after 59 minutes, but not after three hours", async () => {
    let timeMs = nowMs;
    const edge = createMemoryEdge({ nowMs: () => timeMs });
    const of = () =>
      new FailedAttempts({
        counters: edge.counters({ timeoutMs: 1_000 }),
        workspaceId: WORKSPACE,
        nowMs: () => timeMs,
        onInternalError: (error) => {
          throw error;
        },
      });
    of().record(attempt("good"), "VALID");
    const block = (attempts: FailedAttempts) => {
      for (let at = 0; at < LIMIT; at++) attempts.record(attempt(`${at}`), "NOT_FOUND");
      return attempts;
    };
    timeMs += 59 * 60_000;
    expect(await block(of()).check(attempt("good"))).toBeUndefined();
    expect(await block(of()).check(attempt("bad"))).toBeGreaterThan(0);
    timeMs += 2 * 3_600_000;
    expect(await block(of()).check(attempt("good"))).toBeGreaterThan(0);
  });
});
