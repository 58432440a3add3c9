import { describe, expect, test } from "vitest";
import { defaultChoice, plotColumns, plotted, SERIES_MAX } from "./plot-choice.ts";

const rows = [
  { time: "2026-03-02T00:00:00Z", outcome: "VALID", n: 2, ratio: null },
  { time: "2026-03-01T00:00:00Z", outcome: "VALID", n: 1, ratio: 0.5 },
  { time: "2026-03-02T00:00:00Z", outcome: "EXPIRED", n: 4, ratio: 0.5 },
];
const columns = ["time", "outcome", "n", "ratio"];

describe("columns", () => {
  test("type of a query result column is derived from the values of all rows", () => {
    expect(plotColumns(columns, rows)).toEqual({ x: ["time", "n", "ratio"], y: ["n", "ratio"], by: ["outcome"] });
    expect(
      plotColumns(
        ["a", "b"],
        [
          { a: 1, b: [1] },
          { a: "x", b: [2] },
        ],
      ),
    ).toEqual({ x: [], y: [], by: [] });
  });

  test("default chart has a time column, a number column and a series column", () => {
    expect(defaultChoice(columns, rows)).toEqual({ x: "time", y: "n", by: "outcome" });
    expect(defaultChoice(["n"], [{ n: 1 }, { n: 2 }])).toBeUndefined();
    expect(defaultChoice(columns, rows.slice(0, 1))).toBeUndefined();
  });

  test("raw time in Unix ms is recognized as a time column", () => {
    const raw = [
      { time: 1_700_000_000_000, n: 1 },
      { time: 1_700_000_001_000, n: 2 },
    ];
    const choice = defaultChoice(["n", "time"], raw);
    expect(choice).toEqual({ x: "time", y: "n", by: undefined });
    expect(plotted(raw, choice as NonNullable<typeof choice>).over).toBe("time");
  });
});

describe("plotted data", () => {
  test("chart data is sorted by x, with gaps for missing rows", () => {
    expect(plotted(rows, { x: "time", y: "n", by: "outcome" })).toEqual({
      xs: [Date.parse("2026-03-01"), Date.parse("2026-03-02")],
      over: "time",
      series: [
        { name: "EXPIRED", ys: [null, 4], total: 4 },
        { name: "VALID", ys: [1, 2], total: 3 },
      ],
      omitted: 0,
    });
  });

  test("chart data adds up rows with the same x and series, and has only the largest series", () => {
    const many = Array.from({ length: 30 }, (_, n) => ({ x: n % 3, y: n, by: `s${n % 15}` }));
    const { series, omitted, xs, over } = plotted(many, { x: "x", y: "y", by: "by" });
    expect([xs, over, series.length, omitted]).toEqual([[0, 1, 2], "numbers", SERIES_MAX, 15 - SERIES_MAX]);
    expect(series[0]).toMatchObject({ name: "s14", total: 14 + 29 });
  });
});
