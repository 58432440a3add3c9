import { describe, expect, test } from "vitest";
import { Code } from "../../core/verification/codes.ts";
import type { TimeWindow } from "./buckets.ts";
import {
  checksOverTime,
  isWhole,
  OUTCOMES,
  outcomesOverTime,
  readCheckRows,
  readLimitRows,
  readOutcomeRows,
  readTopRows,
  stacked,
  WHOLE_STEPS,
} from "./series.ts";

const HOUR_MS = 3_600_000;
const FROM_MS = Date.parse("2026-03-01T10:00:00Z");
const WINDOW: TimeWindow = { bucket: "hour", fromMs: FROM_MS, toMs: FROM_MS + 4 * HOUR_MS };
const ALL = Number.POSITIVE_INFINITY;
const row = (hour: number, outcome: string, verifications: number, credits = 0) => ({
  timeMs: FROM_MS + hour * HOUR_MS,
  outcome,
  verifications,
  credits,
});

test("every verification outcome has a label", () => {
  expect(Object.keys(OUTCOMES).sort()).toEqual([...Code.options].sort());
});

describe("outcomes over time", () => {
  test("outcome series have a value for each bucket, and totals", () => {
    const rows = [row(2, "RATE_LIMITED", 3), row(0, "VALID", 5, 7), row(2, "VALID", 1, 2)];
    const { series, credits, total, creditsTotal, times } = outcomesOverTime(rows, WINDOW, ALL);
    expect(times).toEqual([0, 1, 2, 3].map((hour) => FROM_MS + hour * HOUR_MS));
    expect(series).toEqual([
      { outcome: "VALID", counts: [5, 0, 1, 0], total: 6 },
      { outcome: "RATE_LIMITED", counts: [0, 0, 3, 0], total: 3 },
    ]);
    expect([credits, total, creditsTotal]).toEqual([[7, 0, 2, 0], 9, 9]);
  });

  test("outcome series have gaps for uncounted buckets and include partially counted buckets", () => {
    const { series } = outcomesOverTime([row(0, "VALID", 1), row(3, "VALID", 2)], WINDOW, FROM_MS + 2 * HOUR_MS);
    expect(series[0]?.counts).toEqual([1, 0, null, 2]);
  });

  test("outcome series list unknown outcomes last and drop rows outside the range", () => {
    const rows = [row(0, "ZZZ", 1), row(0, "constructor", 1), row(0, "VALID", 1), row(9, "VALID", 100)];
    const { series, total } = outcomesOverTime(rows, WINDOW, ALL);
    expect(series.map(({ outcome }) => outcome)).toEqual(["VALID", "ZZZ", "constructor"]);
    expect(total).toBe(3);
  });

  test("stacked outcome series add up to the total and have gaps for unknown data", () => {
    const tops = stacked([{ counts: [1, null, null] }, { counts: [2, 4, null] }]);
    expect(tops).toEqual([
      [1, null, null],
      [3, 4, null],
    ]);
  });
});

describe("result rows", () => {
  test("outcome rows are parsed with dates and with date-times", () => {
    const response = [
      { time: "2026-03-01T10:00:00Z", outcome: "VALID", verifications: 1, credits: 0 },
      { time: "2026-03-02", outcome: "VALID", verifications: 1, credits: 0 },
    ];
    expect(readOutcomeRows(response).map(({ timeMs }) => timeMs)).toEqual([
      FROM_MS,
      Date.parse("2026-03-02T00:00:00Z"),
    ]);
  });

  test.each([
    { time: "soon", outcome: "VALID", verifications: 1, credits: 0 },
    { time: "2026-03-02", outcome: null, verifications: 1, credits: 0 },
    { time: "2026-03-02", outcome: "VALID", verifications: null, credits: 0 },
    {},
  ])("outcome row with unexpected members is rejected: %j", (response) => {
    expect(() => readOutcomeRows([response])).toThrow("invalid response: expected a");
    expect(() => readTopRows([response], "key_id")).toThrow("invalid response: expected a");
    expect(() => readLimitRows([response])).toThrow("invalid response: expected a");
  });
});

test("series of rate-limit checks have gaps for uncounted buckets and drop rows outside the range", () => {
  const checks = [0, 3, 9].map((hour) => ({ timeMs: FROM_MS + hour * HOUR_MS, checks: 5, refused: hour }));
  expect(checksOverTime(checks, WINDOW, FROM_MS + 2 * HOUR_MS)).toMatchObject({
    passed: [5, 0, null, 2],
    refused: [0, 0, null, 3],
    passedTotal: 7,
    refusedTotal: 3,
  });
  expect(() => readCheckRows([{ time: "2026-03-01T10:00:00Z", checks: "5", refused: 0 }])).toThrow("expected a number");
});

test.each([
  { values: [[0, 3, null], [1]], whole: true },
  { values: [[]], whole: true },
  { values: [[1, 2], [0.5]], whole: false },
])("values $values are shown on an integer axis: $whole", ({ values, whole }) => expect(isWhole(values)).toBe(whole));

test("steps of an integer axis are ascending integers from 1", () => {
  expect(WHOLE_STEPS.slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
  expect(WHOLE_STEPS.every(Number.isSafeInteger)).toBe(true);
  expect(WHOLE_STEPS).toEqual(WHOLE_STEPS.toSorted((a, b) => a - b));
});
