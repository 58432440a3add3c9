import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { admitsAt, decideLimit, rollCounts, usedAt, type WindowCounts, windowAt } from "./window.ts";

const minute = 60_000;
const at = (window: number, share: number): number => window * minute + share * minute;

describe("one decision", () => {
  const counts: WindowCounts = { window: 100, current: 3, previous: 8 };
  const question = { limit: 10, durationMs: minute, counts, cost: 1, nowMs: at(100, 0.25) };

  test("sliding window matches the example of api-v2.md section 9.1", () => {
    const first = decideLimit(question);
    expect(first).toMatchObject({ passed: true, effective: 10, remaining: 0, resetMs: 101 * minute });
    expect(first.counts).toEqual({ window: 100, current: 4, previous: 8 });
    const second = decideLimit({ ...question, counts: first.counts });
    expect(second).toMatchObject({ passed: false, effective: 11, remaining: 0, counts: first.counts });
    const later = decideLimit({ ...question, counts: first.counts, nowMs: at(100, 0.5) });
    expect(later).toMatchObject({ passed: true, effective: 9, remaining: 1 });
  });

  test.each([
    { name: "a fresh counter starts from nothing", change: { counts: undefined }, passed: true, remaining: 9 },
    {
      name: "a check without cost passes at exactly the limit",
      change: { limit: 9, cost: 0 },
      passed: true,
      remaining: 0,
    },
    { name: "a check without cost is refused beyond it", change: { limit: 8, cost: 0 }, passed: false, remaining: 0 },
    { name: "a limit of 0 refuses", change: { limit: 0, counts: undefined }, passed: false, remaining: 0 },
    {
      name: "a limit of 0 refuses a check too",
      change: { limit: 0, cost: 0, counts: undefined },
      passed: false,
      remaining: 0,
    },
    {
      name: "a cost beyond the limit is refused",
      change: { cost: 11, counts: undefined },
      passed: false,
      remaining: 0,
    },
    { name: "the current window becomes the previous one", change: { nowMs: at(101, 0) }, passed: true, remaining: 6 },
    { name: "two windows on, nothing is left of it", change: { nowMs: at(102, 0) }, passed: true, remaining: 9 },
    {
      name: "a clock behind the window counts as its start",
      change: { nowMs: at(99, 0.1) },
      passed: false,
      remaining: 0,
    },
    {
      name: "so does one that is a minute behind it",
      change: { nowMs: at(99, 0) },
      passed: false,
      remaining: 0,
    },
    {
      name: "one that is further behind, also by hours, begins at zero: the clock of the counts was wrong",
      change: { nowMs: at(99, 0) - 1 },
      passed: true,
      remaining: 9,
    },
    {
      name: "of a long window the clock may be behind by its duration",
      change: { durationMs: 60 * minute, counts: { window: 100, current: 10, previous: 0 }, nowMs: 99 * 60 * minute },
      passed: false,
      remaining: 0,
    },
    {
      name: "the share is formed before the division",
      change: { counts: { window: 100, current: 0, previous: 10 }, nowMs: at(100, 0.9) },
      passed: true,
      remaining: 8,
    },
  ])("sliding window admits or denies a charge as expected: $name", ({ change, passed, remaining }) => {
    expect(decideLimit({ ...question, ...change })).toMatchObject({ passed, remaining });
  });

  test("sliding window check with cost 0 leaves counts unchanged", () => {
    expect(decideLimit({ ...question, cost: 0 }).counts).toBe(counts);
  });

  test("sliding windows are aligned to the epoch", () => {
    expect(windowAt(125_000, minute)).toEqual({ seq: 2, startMs: 120_000, resetMs: 180_000 });
    expect(windowAt(120_000, minute).seq).toBe(2);
  });

  test("sliding window counts never decrease", () => {
    expect(rollCounts(counts, { durationMs: minute, nowMs: at(99, 0) })).toBe(counts);
    expect(rollCounts(counts, { durationMs: minute, nowMs: at(101, 0.5) })).toEqual({
      window: 101,
      current: 0,
      previous: 3,
    });
    expect(rollCounts(counts, { durationMs: minute, nowMs: at(102, 0) })).toEqual({
      window: 102,
      current: 0,
      previous: 0,
    });
  });
});

const durationMs = fc.oneof(
  fc.constantFrom(1000, minute, 3_600_000, 2_592_000_000),
  fc.integer({ min: 1000, max: 100_000 }),
);
const small = fc.nat({ max: 40 });

test("strict sliding window never exceeds its limit despite small backward clock steps", () => {
  const step = fc.record({
    ahead: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 1500 }), fc.integer({ min: -800, max: 4000 })),
    cost: fc.nat({ max: 6 }),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120 }),
      fc.nat({ max: 12 }),
      fc.integer({ min: 1000, max: 2000 }),
      (steps, limit, duration) => {
        let counts: WindowCounts | undefined;
        let nowMs = 1_000_000;
        const consumed = new Map<number, number>();
        for (const { ahead, cost } of steps) {
          nowMs += ahead;
          const decision = decideLimit({ limit, durationMs: duration, counts, cost, nowMs });
          const { window } = decision.counts;
          if (decision.passed) consumed.set(window, (consumed.get(window) ?? 0) + cost);
          expect(consumed.get(window) ?? 0).toBeLessThanOrEqual(limit);
          expect(decision.counts.current).toBe(consumed.get(window) ?? 0);
          expect(decision.counts.previous).toBe(consumed.get(window - 1) ?? 0);
          expect(decision.remaining).toBeGreaterThanOrEqual(0);
          counts = decision.counts;
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("sliding window usage is exact even for products above 2^53", () => {
  const exact = (current: number, previous: number, duration: number, elapsed: number): number =>
    current + Number((BigInt(previous) * BigInt(duration - elapsed)) / BigInt(duration));
  fc.assert(
    fc.property(
      fc.nat({ max: 3_000_000 }),
      fc.nat({ max: 3_000_000 }),
      durationMs,
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (current, previous, duration, share) => {
        const elapsed = Math.floor(duration * share);
        const used = usedAt({ window: 5, current, previous }, { durationMs: duration, nowMs: 5 * duration + elapsed });
        expect(used).toBe(exact(current, previous, duration, elapsed));
      },
    ),
  );
});

describe("the time at which a denied charge passes", () => {
  const passesAt = (question: Parameters<typeof admitsAt>[0], nowMs: number): boolean =>
    decideLimit({ ...question, nowMs }).passed;

  test.each([
    { name: "is never for a limit of 0", limit: 0, cost: 0 },
    { name: "is never for a cost beyond the limit", limit: 5, cost: 6 },
  ])("retry time of a denied charge is correct: it $name", ({ limit, cost }) => {
    expect(admitsAt({ limit, cost, durationMs: minute, counts: undefined, nowMs: 1 })).toBe(Number.POSITIVE_INFINITY);
  });

  test("retry time of an admitted charge is now", () => {
    expect(admitsAt({ limit: 5, cost: 5, durationMs: minute, counts: undefined, nowMs: 1 })).toBe(1);
  });

  test("retry time is the first millisecond in which the denied charge would be admitted", () => {
    fc.assert(
      fc.property(
        fc.record({
          current: small,
          previous: small,
          limit: fc.integer({ min: 1, max: 30 }),
          cost: fc.nat({ max: 30 }),
          durationMs,
          share: fc.double({ min: -0.5, max: 2.5, noNaN: true }),
        }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }),
        ({ current, previous, limit, cost, durationMs: duration, share }, samples) => {
          fc.pre(cost <= limit);
          const nowMs = Math.floor((1000 + share) * duration);
          const question = { limit, cost, durationMs: duration, counts: { window: 1000, current, previous }, nowMs };
          const first = admitsAt(question);
          expect(passesAt(question, first)).toBe(true);
          if (first === nowMs) return;
          expect(passesAt(question, first - 1)).toBe(false);
          for (const sample of samples) {
            expect(passesAt(question, nowMs + Math.floor(sample * (first - 1 - nowMs)))).toBe(false);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("retry time stays valid when other requests consume the limit", () => {
    const step = fc.record({ ahead: fc.nat({ max: 700 }), cost: fc.nat({ max: 5 }) });
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 80 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 6 }),
        (steps, limit, cost) => {
          const duration = 1000;
          let counts: WindowCounts | undefined;
          let nowMs = 5_000_000;
          let refusedUntil = 0;
          for (const step of steps) {
            nowMs += step.ahead;
            const asked = { limit, durationMs: duration, counts, cost, nowMs };
            if (nowMs < refusedUntil) expect(decideLimit(asked).passed).toBe(false);
            if (!decideLimit(asked).passed) refusedUntil = Math.max(refusedUntil, admitsAt(asked));
            counts = decideLimit({ ...asked, cost: step.cost }).counts;
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});

test("full window that ends far in the future denies no request", () => {
  const nowMs = 1_800_000_000_000;
  for (const window of [Math.floor(nowMs / 1_000) + 3_600, Number.MAX_SAFE_INTEGER]) {
    const counts = { window, current: 5, previous: 5 };
    const question = { limit: 5, durationMs: 1_000, counts, cost: 1, nowMs };
    expect(admitsAt(question)).toBe(nowMs);
    expect(decideLimit(question)).toMatchObject({ passed: true, remaining: 4, resetMs: nowMs + 1_000 });
  }
});

describe("precision limits of a double", () => {
  const most = Number.MAX_SAFE_INTEGER;
  const amount = fc.oneof(
    fc.integer({ min: most - 5, max: most }),
    fc.integer({ min: 0, max: most }),
    fc.integer({ min: 2 ** 31 - 2, max: 2 ** 31 + 2 }),
    fc.nat(3),
  );
  const durationMs = fc.oneof(
    fc.constantFrom(1_000, 3_600_000, 86_400_000, 2_592_000_000),
    fc.integer({ min: 1_000, max: 10 ** 10 }),
  );

  test("sliding window carry-over is exact at the precision limit of a double", () => {
    fc.assert(
      fc.property(
        amount,
        durationMs,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (previous, ms, share) => {
          const elapsed = Math.floor(ms * share);
          const nowMs = 100 * ms + elapsed;
          const exact = (BigInt(previous) * BigInt(ms - elapsed)) / BigInt(ms);
          expect(usedAt({ window: 100, current: 0, previous }, { durationMs: ms, nowMs })).toBe(Number(exact));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test.each([1_000, 3_600_000, 86_400_000, 2_592_000_000])(
    "full limit of 2^53 − 1 passes a check without cost (%d ms)",
    (ms) => {
      const counts = { window: 100, current: most, previous: 0 };
      for (const nowMs of [100 * ms, 101 * ms - 1, 101 * ms]) {
        const question = { limit: most, durationMs: ms, counts, nowMs };
        expect(decideLimit({ ...question, cost: 0 })).toMatchObject({ passed: true, remaining: 0 });
        expect(decideLimit({ ...question, cost: 1 }).passed).toBe(false);
      }
    },
  );
});
