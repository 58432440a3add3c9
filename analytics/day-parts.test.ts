import * as fc from "fast-check";
import { expect, test } from "vitest";
import { dayParts } from "./day-parts.ts";

const HOUR_MS = 3_600_000;
const at = (text: string): number => Date.parse(`${text}:00Z`);

test.each([
  { name: "within a day", from: "2026-03-04T05:00", to: "2026-03-04T23:00", days: undefined, rest: 1 },
  { name: "a whole day", from: "2026-03-04T00:00", to: "2026-03-05T00:00", days: 1, rest: 0 },
  { name: "over midnight", from: "2026-03-04T05:00", to: "2026-03-05T05:00", days: undefined, rest: 1 },
  { name: "from midnight", from: "2026-03-04T00:00", to: "2026-03-06T05:00", days: 2, rest: 1 },
  { name: "to midnight", from: "2026-03-04T05:00", to: "2026-03-06T00:00", days: 1, rest: 1 },
  { name: "a week between", from: "2026-02-26T05:00", to: "2026-03-06T05:00", days: 7, rest: 2 },
  { name: "nothing", from: "2026-03-04T05:00", to: "2026-03-04T05:00", days: undefined, rest: 0 },
])("usage query splits its time range into day parts: $name", ({ from, to, days, rest }) => {
  const parts = dayParts({ fromMs: at(from), toMs: at(to) });
  expect(parts.days && (parts.days.toMs - parts.days.fromMs) / (24 * HOUR_MS)).toBe(days);
  expect(parts.rest).toHaveLength(rest);
});

test("parts of a time range that is split at midnight cover each hour exactly once", () => {
  const range = fc.tuple(fc.integer({ min: -500, max: 500_000 }), fc.nat(400));
  fc.assert(
    fc.property(range, ([first, hours]) => {
      const parts = dayParts({ fromMs: first * HOUR_MS, toMs: (first + hours) * HOUR_MS });
      const ranges = parts.days === undefined ? parts.rest : [parts.days, ...parts.rest];
      const covered = ranges.flatMap(({ fromMs, toMs }) =>
        Array.from({ length: (toMs - fromMs) / HOUR_MS }, (_, index) => fromMs / HOUR_MS + index),
      );
      expect(covered.sort((a, b) => a - b)).toEqual(Array.from({ length: hours }, (_, index) => first + index));
      for (const ms of parts.days === undefined ? [] : [parts.days.fromMs, parts.days.toMs]) {
        expect(new Date(ms).getUTCHours()).toBe(0);
      }
    }),
  );
});
