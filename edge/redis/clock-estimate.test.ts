import { beforeEach, expect, test } from "vitest";
import { ClockEstimate, HELD_MS } from "./clock-estimate.ts";

const START_MS = 1_760_000_000_000;
let estimate: ClockEstimate;
beforeEach(() => {
  estimate = new ClockEstimate();
});

/** Measures a Redis clock that is ahead of the local clock by `offsetMs`; request and reply take `thereMs` and `backMs`. */
function measure(sentMs: number, { offsetMs = START_MS, thereMs = 1, backMs = 1 } = {}): void {
  const readMs = sentMs + thereMs;
  estimate.take({ sentMs, receivedMs: readMs + backMs, storeMs: readMs + offsetMs });
}
const errorMs = (monotonicMs: number, offsetMs = START_MS) =>
  (estimate.nowMs(monotonicMs) ?? 0) - monotonicMs - offsetMs;

test("Redis clock estimate is never behind, and at most one round trip ahead", () => {
  expect(estimate.nowMs(5)).toBeUndefined();
  measure(100, { thereMs: 700, backMs: 200 });
  expect(errorMs(1_000)).toBe(700);
  measure(2_000, { thereMs: 3 });
  expect(errorMs(5_000)).toBe(3);
});

test("Redis clock estimate follows a forward jump immediately", () => {
  measure(0);
  measure(1_000, { offsetMs: START_MS + 60_000 });
  expect(errorMs(1_500, START_MS + 60_000)).toBe(1);
});

test.each([50, 4_000, 3_600_000])("Redis clock estimate goes back by %i ms only after 10 s", (ms) => {
  measure(0);
  measure(1_000, { offsetMs: START_MS - ms });
  expect(errorMs(1_002)).toBe(1);
  expect(errorMs(1_001 + HELD_MS)).toBe(1);
  expect(errorMs(1_002 + HELD_MS, START_MS - ms)).toBe(1);
});

test("Redis clock estimate waits another 10 s when the clock steps back a second time", () => {
  measure(0);
  measure(1_000, { offsetMs: START_MS - 2_000 });
  measure(2_000, { offsetMs: START_MS - 2_000 });
  measure(3_000, { offsetMs: START_MS - 3_000 });
  expect(errorMs(1_000 + HELD_MS)).toBe(1);
  expect(errorMs(3_001 + HELD_MS)).toBe(1);
  expect(errorMs(3_002 + HELD_MS, START_MS - 3_000)).toBe(1);
});

test("Redis clock estimate does not mistake round trip variation for a clock change", () => {
  measure(0, { thereMs: 900, backMs: 5 });
  measure(2_000, { thereMs: 1, backMs: 1 });
  expect(errorMs(2_010)).toBe(1);
  measure(12_000, { thereMs: 900, backMs: 900 });
  expect(errorMs(14_000)).toBeLessThan(15);
});

test("Redis clock estimate follows a faster or slower clock without falling behind", () => {
  for (const perSecond of [0.4, -0.4]) {
    for (let second = 0; second < 3_600; second += 10) {
      const offsetMs = START_MS + perSecond * second;
      measure(second * 1_000, { offsetMs, thereMs: second % 70, backMs: 3 });
      const found = errorMs(second * 1_000 + 80, offsetMs);
      expect(found).toBeGreaterThanOrEqual(0);
      expect(found).toBeLessThan(150);
    }
    estimate = new ClockEstimate();
  }
});
