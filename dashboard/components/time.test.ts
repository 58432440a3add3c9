import { expect, test } from "vitest";
import { agoLastsMs, agoText, durationText, exactText } from "./time.ts";

const NOW = Date.UTC(2026, 2, 1, 14, 5, 9);

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [90_000, "1 min 30 s"],
  [3_600_000, "1 h"],
  [3_601_000, "1 h"],
  [90_061_000, "1 d 1 h"],
])("duration of %d ms is displayed as %s", (ms, text) => expect(durationText(ms)).toBe(text));

test.each([
  [0, "now"],
  [999, "now"],
  [1000, "1 s ago"],
  [119_999, "1 min ago"],
  [120_000, "2 min ago"],
  [86_400_000 * 40, "40 d ago"],
  [-1000, "in 1 s"],
  [-86_400_000 * 3, "in 3 d"],
])("time %d ms ago is displayed as %s", (before, text) => expect(agoText(NOW - before, NOW)).toBe(text));

test.each([500, 1500, 61_000, 3_599_999, 7_200_001, -1500, -61_000, -90_000_000])(
  "relative time text for %d ms stays valid until its next update",
  (before) => {
    const at = NOW - before;
    const lasts = agoLastsMs(at, NOW);
    const text = agoText(at, NOW);
    expect(agoText(at, NOW + lasts - 1)).toBe(text);
    expect(agoText(at, NOW + lasts)).not.toBe(text);
  },
);

test("exact time is displayed in UTC", () => expect(exactText(NOW)).toBe("2026-03-01 14:05:09 UTC"));
