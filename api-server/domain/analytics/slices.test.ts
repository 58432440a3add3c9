import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Slice } from "../../../analytics/counts.ts";
import { countSlices, fullHours, sliceStart, slicesBetween } from "./slices.ts";

const at = (text: string): number => Date.parse(text);
const text = (ms: number): string => new Date(ms).toISOString();

test.each([
  { slice: "hour", of: "2026-03-04T09:05:01.002Z", start: "2026-03-04T09:00:00.000Z" },
  { slice: "day", of: "2026-03-04T23:59:59.999Z", start: "2026-03-04T00:00:00.000Z" },
  { slice: "month", of: "2024-02-29T23:59:59.999Z", start: "2024-02-01T00:00:00.000Z" },
  { slice: "month", of: "2025-12-31T23:59:59.999Z", start: "2025-12-01T00:00:00.000Z" },
  { slice: "month", of: "1969-12-31T23:59:59.999Z", start: "1969-12-01T00:00:00.000Z" },
  { slice: "month", of: "0050-06-15T00:00:00.000Z", start: "0050-06-01T00:00:00.000Z" },
  { slice: "hour", of: "2026-03-04T09:00:00.000Z", start: "2026-03-04T09:00:00.000Z" },
] as const)("time slice ($slice) that contains $of starts at $start", ({ slice, of, start }) => {
  expect(text(sliceStart(slice, at(of)))).toBe(start);
});

test.each([
  { slice: "hour", from: "2026-03-04T09:05:00Z", to: "2026-03-05T15:05:00Z", count: 31 },
  { slice: "hour", from: "2026-03-04T09:05:00Z", to: "2026-03-04T09:06:00Z", count: 1 },
  { slice: "day", from: "2026-02-28T23:59:00Z", to: "2026-03-01T00:00:00Z", count: 2 },
  { slice: "month", from: "2025-11-30T23:59:00Z", to: "2026-03-01T00:00:00Z", count: 5 },
  { slice: "day", from: "2026-03-04T09:05:00Z", to: "2026-03-03T09:05:00Z", count: 0 },
] as const)("period from $from to $to has $count time slices of one $slice", ({ slice, from, to, count }) => {
  expect(slicesBetween(slice, at(from), at(to))).toHaveLength(count);
});

test("time slices are contiguous and include the slices of the start and the end", () => {
  const instant = fc.integer({ min: 0, max: 4_102_444_800_000 });
  const slices = fc.constantFrom<Slice>("hour", "day", "month");
  const spans = { hour: 100 * 3_600_000, day: 100 * 86_400_000, month: 3000 * 86_400_000 };
  fc.assert(
    fc.property(instant, slices, fc.double({ min: 0, max: 1, noNaN: true }), (startMs, slice, share) => {
      const endMs = startMs + Math.floor(share * spans[slice]);
      const starts = slicesBetween(slice, startMs, endMs);
      expect(starts).toHaveLength(countSlices(slice, startMs, endMs));
      expect([starts[0], starts.at(-1)]).toEqual([sliceStart(slice, startMs), sliceStart(slice, endMs)]);
      for (const [index, start] of starts.entries()) {
        expect(sliceStart(slice, start)).toBe(start);
        if (index > 0) expect(sliceStart(slice, start - 1)).toBe(starts[index - 1]);
      }
    }),
  );
});

test("number of yearly slices is computed without enumerating hours", () => {
  expect(countSlices("hour", 0, 8_640_000_000_000_000)).toBe(2_400_000_001);
});

test("usage window includes the complete hours of start and end", () => {
  const { fromMs, toMs } = fullHours(at("2026-03-04T09:05:00Z"), at("2026-03-04T11:05:00Z"));
  expect([text(fromMs), text(toMs)]).toEqual(["2026-03-04T09:00:00.000Z", "2026-03-04T12:00:00.000Z"]);
});
