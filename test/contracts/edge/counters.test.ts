import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LimitCharge } from "../../../core/charges.ts";
import type { EdgeCounters } from "../../../edge/open.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";

/** So long that a window ends during a test only if the test starts in the last seconds of an hour. */
const HOUR_MS = 3_600_000;

const aCharge = (charge: Partial<LimitCharge> = {}): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: "writes" },
  identifier: aName("id"),
  limit: 10,
  durationMs: HOUR_MS,
  cost: 1,
  accuracy: "strict",
  ...charge,
});

describe.each(EDGES)("counters $name", ({ open }) => {
  let opened: OpenedEdge;
  let counters: EdgeCounters;

  beforeAll(async () => {
    opened = await open();
    counters = opened.edge.counters({ timeoutMs: 5_000 });
  });
  afterAll(() => opened.close());

  const consume = (...limits: LimitCharge[]) => counters.consume({ limits });
  /** Returns the remaining amount of a limit by a check that consumes nothing. */
  const left = async (charge: LimitCharge) => (await consume({ ...charge, cost: 0 })).limits[0]?.remaining;

  test("limit of 100 admits exactly 100 of 1,000 concurrent requests", async () => {
    const charge = aCharge({ limit: 100 });
    const consumed = await Promise.all(Array.from({ length: 1000 }, () => consume(charge)));
    expect(consumed.filter(({ passed }) => passed)).toHaveLength(100);
    expect(await left(charge)).toBe(0);
  });

  test("two processes share one counter", async () => {
    const another = (await opened.openAnother()).counters({ timeoutMs: 5_000 });
    const charge = aCharge({ limit: 50 });
    const calls = Array.from({ length: 100 }, (_, i) => (i % 2 ? counters : another).consume({ limits: [charge] }));
    expect((await Promise.all(calls)).filter(({ passed }) => passed)).toHaveLength(50);
  });

  test("admitted request reports the remaining amount and the window end", async () => {
    const charge = aCharge({ limit: 10, cost: 3 });
    const { limits, nowMs, passed } = await consume(charge);
    expect(passed).toBe(true);
    expect(Math.abs(nowMs - Date.now())).toBeLessThan(10_000);
    const endMs = (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS;
    expect(limits).toEqual([{ passed: true, remaining: 7, resetMs: endMs }]);
  });

  test("check of a local limit makes the decision of the next request and consumes nothing", async () => {
    const charge = aCharge({ limit: 2, accuracy: "local" });
    expect(counters.check(charge)).toMatchObject({ passed: true });
    await consume(charge);
    await consume(charge);
    for (let at = 0; at < 3; at++) expect(counters.check(charge).passed).toBe(false);
    expect(counters.check(charge).retryAtMs).toBeGreaterThan(Date.now() - 10_000);
    expect(counters.check({ ...charge, identifier: aName("other") }).passed).toBe(true);
  });

  test("check of a local limit includes what other processes have counted", async () => {
    const another = (await opened.openAnother()).counters({ timeoutMs: 5_000 });
    const charge = aCharge({ limit: 2, accuracy: "local" });
    await another.consume({ limits: [{ ...charge, cost: 2 }] });
    await expect.poll(() => counters.check(charge).passed, { timeout: 5_000 }).toBe(false);
  });

  test("denied request consumes nothing and reports its retry time", async () => {
    const charge = aCharge({ limit: 5 });
    await consume({ ...charge, cost: 4 });
    const refused = await consume({ ...charge, cost: 2 });
    expect(refused.passed).toBe(false);
    expect(refused.limits[0]).toMatchObject({ passed: false, remaining: 0 });
    expect(refused.limits[0]?.retryAtMs).toBeGreaterThan(refused.nowMs);
    expect((await consume(charge)).passed).toBe(true);
  });

  test("limit of 2^53 − 1 can be exhausted, and a check with cost 0 still passes", async () => {
    const charge = aCharge({ limit: Number.MAX_SAFE_INTEGER, cost: Number.MAX_SAFE_INTEGER - 1 });
    expect((await consume(charge)).limits[0]).toMatchObject({ passed: true, remaining: 1 });
    expect((await consume({ ...charge, cost: 2 })).passed).toBe(false);
    expect((await consume({ ...charge, cost: 1 })).limits[0]).toMatchObject({ passed: true, remaining: 0 });
    expect((await consume({ ...charge, cost: 0 })).limits[0]).toMatchObject({ passed: true, remaining: 0 });
    expect((await consume({ ...charge, cost: 1 })).passed).toBe(false);
  });

  test("two charges of one request to the same counter add up", async () => {
    const charge = aCharge({ limit: 10, cost: 6 });
    const both = await consume(charge, charge);
    expect(both.passed).toBe(false);
    expect(both.limits.map(({ passed }) => passed)).toEqual([true, false]);
    expect(await left(charge)).toBe(10);
    expect((await consume({ ...charge, cost: 4 }, charge)).passed).toBe(true);
    expect(await left(charge)).toBe(0);
  });

  test("limits of one request are charged atomically", async () => {
    const full = aCharge({ limit: 1 });
    const other = aCharge({ limit: 10, cost: 2 });
    await consume(full);
    const refused = await consume(other, full, aCharge());
    expect(refused.passed).toBe(false);
    expect(refused.limits.map(({ passed, remaining }) => ({ passed, remaining }))).toEqual([
      { passed: true, remaining: 10 },
      { passed: false, remaining: 0 },
      { passed: true, remaining: 10 },
    ]);
    expect(await left(other)).toBe(10);
  });

  test("concurrent requests that charge two limits never exceed either limit", async () => {
    const narrow = aCharge({ limit: 20 });
    const wide = aCharge({ limit: 1000 });
    const consumed = await Promise.all(Array.from({ length: 200 }, () => consume(wide, narrow)));
    const admitted = consumed.filter(({ passed }) => passed).length;
    expect(admitted).toBeLessThanOrEqual(20);
    expect(await left(wide)).toBe(1000 - admitted);
    expect(await left(narrow)).toBe(20 - admitted);
  });

  test("100 limits of one request are charged atomically", async () => {
    const charges = Array.from({ length: 100 }, (_, i) => aCharge({ limit: i === 50 ? 1 : 10, cost: 1 }));
    expect((await consume(...charges)).passed).toBe(true);
    const refused = await consume(...charges);
    expect(refused.limits.map(({ passed }) => passed)).toEqual(charges.map((_, i) => i !== 50));
    expect(refused.limits.map(({ remaining }) => remaining)).toEqual(charges.map((_, i) => (i === 50 ? 0 : 9)));
    expect(await left(charges[99] ?? aCharge())).toBe(9);
  });

  test("check with cost 0 still passes when the limit is exactly used up", async () => {
    const charge = aCharge({ limit: 2, cost: 2 });
    await consume(charge);
    expect(await consume({ ...charge, cost: 0 })).toMatchObject({ passed: true, limits: [{ remaining: 0 }] });
  });

  test("calls with a limit of 0 or a cost above the limit are always denied", async () => {
    for (const charge of [aCharge({ limit: 0, cost: 0 }), aCharge({ limit: 5, cost: 6 })]) {
      const { limits } = await consume(charge);
      expect(limits).toMatchObject([{ passed: false, remaining: 0, retryAtMs: Number.POSITIVE_INFINITY }]);
    }
  });

  test("increased limit keeps its counter, and another duration starts a new one", async () => {
    const charge = aCharge({ limit: 5, cost: 5 });
    await consume(charge);
    expect(await left({ ...charge, limit: 8 })).toBe(3);
    expect(await left({ ...charge, durationMs: 2 * HOUR_MS })).toBe(5);
  });

  test("counters are separate per workspace, kind, scope and identifier", async () => {
    const charge = aCharge({ limit: 1, scope: { kind: "name", value: "a:b" }, identifier: "c{d}:e" });
    await consume(charge);
    const others = [
      { ...charge, workspaceId: "ws_2" },
      { ...charge, scope: { kind: "namespace", value: "a:b" } as const },
      { ...charge, scope: { kind: "name", value: "a" } as const, identifier: "b:c{d}:e" },
      { ...charge, identifier: "c{d}:E" },
    ];
    for (const other of others) expect(await left(other)).toBe(1);
    expect(await left(charge)).toBe(0);
  });

  test("counters stay exact near the maximum integer", async () => {
    const charge = aCharge({ limit: Number.MAX_SAFE_INTEGER, cost: 1_234_567_890_123_456 });
    await consume(charge);
    await consume({ ...charge, cost: 1 });
    expect(await left(charge)).toBe(Number.MAX_SAFE_INTEGER - 1_234_567_890_123_457);
  });

  test("request without limits passes", async () => {
    expect(await consume()).toMatchObject({ passed: true, limits: [] });
  });

  test("local and strict limits of one request are decided atomically", async () => {
    const local = aCharge({ limit: 3, accuracy: "local" });
    const strict = aCharge({ limit: 1 });
    expect(await consume(local, strict)).toMatchObject({ passed: true, limits: [{ remaining: 2 }, { remaining: 0 }] });
    expect(await consume(local, strict)).toMatchObject({
      passed: false,
      limits: [{ remaining: 2 }, { passed: false }],
    });
    expect(await consume({ ...local, cost: 2 })).toMatchObject({ passed: true, limits: [{ remaining: 0 }] });
    const other = aCharge({ limit: 4 });
    expect(await consume(other, local)).toMatchObject({ passed: false, limits: [{ remaining: 4 }, { passed: false }] });
    expect(await left(other)).toBe(4);
  });
});
