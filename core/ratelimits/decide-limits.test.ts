import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CounterCharge, decideLimits } from "./decide-limits.ts";
import { decideLimit, type WindowCounts } from "./window.ts";

const hour = 3_600_000;
const nowMs = 1000 * hour;
const aCharge = (charge: Partial<CounterCharge>): CounterCharge => ({
  counterKey: "a",
  limit: 10,
  durationMs: hour,
  cost: 1,
  ...charge,
});
const holding =
  (counts: Record<string, number>) =>
  (key: string): WindowCounts | undefined =>
    counts[key] === undefined ? undefined : { window: 1000, current: counts[key], previous: 0 };

describe("several limits together", () => {
  test("decideLimits charges all limits when all pass", () => {
    const { passed, outcomes, updates } = decideLimits(
      [aCharge({}), aCharge({ counterKey: "b", cost: 4 })],
      holding({ b: 5 }),
      nowMs,
    );
    expect(passed).toBe(true);
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([9, 1]);
    expect(updates.get("a")?.current).toBe(1);
    expect(updates.get("b")?.current).toBe(9);
  });

  test("decideLimits charges nothing when one limit denies", () => {
    const charges = [aCharge({ cost: 3 }), aCharge({ counterKey: "b" })];
    const { passed, outcomes, updates } = decideLimits(charges, holding({ a: 2, b: 10 }), nowMs);
    expect(passed).toBe(false);
    expect(updates.size).toBe(0);
    expect(outcomes[0]).toEqual({ passed: true, remaining: 8, resetMs: 1001 * hour });
    expect(outcomes[1]).toMatchObject({ passed: false, remaining: 0 });
    expect(outcomes[1]?.retryAtMs).toBeGreaterThan(nowMs);
  });

  test("decideLimits reports zero remaining for the denied limit and unchanged values for the others", () => {
    const halfway = nowMs + hour / 2;
    const read = (): WindowCounts => ({ window: 1000, current: 2, previous: 8 });
    const { outcomes } = decideLimits([aCharge({ cost: 3 }), aCharge({ counterKey: "b", cost: 5 })], read, halfway);
    expect(outcomes[0]).toEqual({ passed: true, remaining: 4, resetMs: 1001 * hour });
    expect(outcomes[1]).toMatchObject({ passed: false, remaining: 0 });
  });

  test("decideLimits with 12 per minute and 200 per month charges the monthly limit only for admitted requests", () => {
    const counts = new Map<string, WindowCounts>();
    const call = () => {
      const charges = [
        aCharge({ limit: 12 }),
        aCharge({ counterKey: "month", limit: 200, durationMs: 24 * 30 * hour }),
      ];
      const decided = decideLimits(charges, (key) => counts.get(key), nowMs);
      for (const [key, value] of decided.updates) counts.set(key, value);
      return decided;
    };
    for (let i = 0; i < 12; i++) expect(call().passed).toBe(true);
    const { passed, outcomes } = call();
    expect(passed).toBe(false);
    expect(outcomes[1]).toMatchObject({ passed: true, remaining: 188 });
  });

  test("decideLimits adds up costs of several limits on one counter", () => {
    const charges = [aCharge({ cost: 6 }), aCharge({ cost: 5 })];
    expect(decideLimits(charges, holding({}), nowMs).outcomes.map(({ passed }) => passed)).toEqual([true, false]);
    const fitting = decideLimits([aCharge({ cost: 6 }), aCharge({ cost: 4 })], holding({}), nowMs);
    expect(fitting).toMatchObject({ passed: true, outcomes: [{ remaining: 4 }, { remaining: 0 }] });
    expect(fitting.updates.get("a")?.current).toBe(10);
  });

  test("decideLimits does not count a denied charge against other limits on the same counter", () => {
    const { outcomes } = decideLimits([aCharge({ limit: 2, cost: 3 }), aCharge({ cost: 10 })], holding({}), nowMs);
    expect(outcomes.map(({ passed }) => passed)).toEqual([false, true]);
  });

  test("decideLimits reports the time at which a single charge of the same cost would pass", () => {
    const { outcomes } = decideLimits([aCharge({ cost: 6 }), aCharge({ cost: 5 })], holding({}), nowMs);
    expect(outcomes[1]?.retryAtMs).toBe(nowMs);
  });

  test("decideLimits stores nothing for a check with cost 0", () => {
    expect(decideLimits([aCharge({ cost: 0 })], holding({ a: 10 }), nowMs)).toMatchObject({
      passed: true,
      updates: new Map(),
    });
  });

  test("decideLimits admits a request without charges", () => {
    expect(decideLimits([], holding({}), nowMs)).toEqual({ passed: true, outcomes: [], updates: new Map() });
  });
});

test("decideLimits is atomic and applies charges in order for any input", () => {
  const charge = fc.record({
    counterKey: fc.constantFrom("a", "b", "c"),
    limit: fc.nat({ max: 12 }),
    durationMs: fc.constant(hour),
    cost: fc.nat({ max: 6 }),
  });
  const stored = fc.record({ a: fc.nat({ max: 8 }), b: fc.nat({ max: 8 }), c: fc.nat({ max: 8 }) });
  fc.assert(
    fc.property(fc.array(charge, { maxLength: 6 }), stored, (charges, counts) => {
      const read = holding(counts);
      const { passed, outcomes, updates } = decideLimits(charges, read, nowMs);
      const added = new Map<string, number>();
      charges.forEach(({ counterKey, limit, durationMs, cost }, i) => {
        const before = read(counterKey);
        const current = (before?.current ?? 0) + (added.get(counterKey) ?? 0);
        const alone = decideLimit({ limit, durationMs, counts: { window: 1000, current, previous: 0 }, cost, nowMs });
        expect(outcomes[i]?.passed).toBe(alone.passed);
        if (alone.passed) added.set(counterKey, (added.get(counterKey) ?? 0) + cost);
      });
      expect(passed).toBe(outcomes.every((outcome) => outcome.passed));
      for (const key of ["a", "b", "c"]) {
        const after = (updates.get(key) ?? read(key))?.current ?? 0;
        const expected = (read(key)?.current ?? 0) + (passed ? (added.get(key) ?? 0) : 0);
        expect(after).toBe(expected);
      }
    }),
    { numRuns: 1000 },
  );
});
