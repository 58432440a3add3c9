import { expect, test } from "vitest";
import { parseDuration } from "../duration.ts";
import { formatDuration } from "./format-duration.ts";

test.each([
  [0, "0s"],
  [1, "1ms"],
  [1000, "1s"],
  [60_000, "1m"],
  [90_061_001, "25h1m1s1ms"],
  [86_400_000, "24h"],
  [876_000 * 3_600_000, "876000h"],
])("duration of %d ms is formatted as %s and parsed back", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
  expect(parseDuration(text)).toBe(ms);
});
