import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationOf, parseDuration } from "./duration.ts";

describe("a duration", () => {
  test.each([
    ["500ms", 500],
    ["60s", 60_000],
    ["15m", 900_000],
    ["1h", 3_600_000],
    ["1h30m", 5_400_000],
    ["1m30s500ms", 90_500],
    [1500, 1500],
    [0, 0],
  ])("duration %j is parsed as %d ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

  test.each([
    "",
    "60",
    "1 s",
    "-1s",
    "1.5s",
    "1d",
    "s",
    "1S",
    "1h x",
    "9".repeat(33),
    `${"9".repeat(20)}h`,
    1.5,
    -1,
    Number.NaN,
  ])("duration parser rejects %j", (text) => expect(() => parseDuration(text)).toThrow(RangeError));

  test("duration with several units is their sum", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 999 }),
        fc.nat({ max: 999 }),
        fc.nat({ max: 999 }),
        fc.nat({ max: 999 }),
        (h, m, s, ms) => {
          expect(parseDuration(`${h}h${m}m${s}s${ms}ms`)).toBe(((h * 60 + m) * 60 + s) * 1000 + ms);
        },
      ),
    );
  });
});

test("duration schema rejects values below its minimum and names the minimum", () => {
  const schema = durationOf({ msMin: 1000 });
  for (const fine of ["1s", 1000, "1000ms", "2h"]) expect(schema.parse(fine)).toBe(fine);
  for (const bad of ["999ms", 999, "x", -1, true, null]) {
    const parsed = schema.safeParse(bad);
    expect(parsed.error?.issues[0]?.message).toContain("expected a duration such as 500ms, 60s or 1h30m");
  }
});
