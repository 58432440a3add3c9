import { describe, expect, test } from "vitest";
import { formatBar, formatPlot } from "./chart.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.parse("2026-03-04T00:00:00Z");
const points = (values: readonly number[]) =>
  values.map((value, index) => ({ timeMs: START_MS + index * HOUR_MS, value }));

describe("a plot", () => {
  test("chart labels show the maximum and 0, and the first and last time", () => {
    const lines = formatPlot(points([0, 7, 3]), { columns: 60, unit: "hour" });
    expect(lines[0]).toBe("verifications per hour");
    expect(lines.some((line) => line.startsWith("7┤"))).toBe(true);
    expect(lines.some((line) => line.startsWith("0┤"))).toBe(true);
    expect(lines.at(-1)).toMatch(/^ +2026-03-04 00:00:00Z +2026-03-04 02:00:00Z$/);
  });

  test.each([40, 60, 120])("chart with few or many points fits into %i columns", (columns) => {
    for (const count of [1, 2, 24, 10_000]) {
      const lines = formatPlot(points(Array.from({ length: count }, (_, index) => (index * 7919) % 100_000)), {
        columns,
        unit: "hour",
      });
      for (const line of lines.slice(1)) expect([...line].length).toBeLessThanOrEqual(Math.max(columns, 48));
    }
  });

  test("chart with more points than columns shows the maximum of each column", () => {
    const values = Array.from({ length: 500 }, (_, index) => (index === 250 ? 12_345 : 1));
    const lines = formatPlot(points(values), { columns: 60, unit: "hour" });
    expect(lines[0]).toBe("verifications per hour, maximum of each 10 hours");
    expect(lines.some((line) => line.startsWith("12345┤"))).toBe(true);
  });

  test("chart of zeros is a line at 0, and chart without points is empty", () => {
    expect(formatPlot(points([0, 0]), { unit: "day" }).some((line) => line.startsWith("0┤━━"))).toBe(true);
    expect(formatPlot([], { unit: "day" })).toEqual([]);
  });
});

test.each([
  [0, ""],
  [0.005, "▏"],
  [0.5, "█".repeat(10)],
  [1, "█".repeat(20)],
])("chart bar for the share %d is %j", (share, bar) => expect(formatBar(share)).toBe(bar));
