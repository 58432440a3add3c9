import { expect, test } from "vitest";
import { OUTCOMES } from "../usage/series.ts";
import { MARKS, markAt } from "./plot-marks.ts";

test("each outcome of a verification has a pattern and a line of its own, so that no colour is needed to tell them apart", () => {
  const marks = Object.keys(OUTCOMES).map((_, place) => markAt(place));
  expect(new Set(marks.map(({ pattern }) => pattern)).size).toBe(marks.length);
  expect(new Set(marks.map(({ dash }) => dash.join(" "))).size).toBe(marks.length);
});

test("places beyond the last mark begin again", () => {
  expect(markAt(MARKS.length)).toBe(MARKS[0]);
});
