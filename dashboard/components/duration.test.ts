import fc from "fast-check";
import { expect, test } from "vitest";
import { formatDuration, parseCount, parseDuration } from "./duration.ts";

test.each([
  ["250ms", 250],
  ["90s", 90_000],
  ["5 m", 300_000],
  ["5 min", 300_000],
  ["1h 30m", 5_400_000],
  ["1.5h", 5_400_000],
  ["7D", 604_800_000],
  ["", undefined],
  ["5", undefined],
  ["5 weeks", undefined],
  ["-5s", undefined],
  ["0.3ms", undefined],
  ["1h nonsense", undefined],
])("duration %s is parsed as %s ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

test("formatted duration is parsed to the same value", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 1e13 }), (ms) => parseDuration(formatDuration(ms)) === ms));
});

test.each([
  ["0", 0],
  ["1,000", 1000],
  ["10 000", 10_000],
  ["", undefined],
  ["1.5", undefined],
  ["-1", undefined],
  ["1e3", undefined],
  ["9999999999999999", undefined],
])("number field %s is parsed as %s", (text, count) => expect(parseCount(text)).toBe(count));
