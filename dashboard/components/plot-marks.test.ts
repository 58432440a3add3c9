import { expect, test } from "vitest";
import { OUTCOMES } from "../usage/series.ts";
import { MARKS, outcomeMark, plotMarkAt } from "./plot-marks.ts";

test("each verification outcome has its own line and pattern, independent of color", () => {
  const marks = Object.keys(OUTCOMES).map(outcomeMark);
  expect(new Set(marks.map(({ color }) => color)).size).toBe(marks.length);
  expect(new Set(marks.map(({ pattern }) => pattern)).size).toBe(marks.length);
  expect(new Set(marks.map(({ dash }) => dash.join(" "))).size).toBe(marks.length);
});

test("chart markers repeat after the last one", () => {
  expect(plotMarkAt(MARKS.length)).toBe(MARKS[0]);
});
