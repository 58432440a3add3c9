import { describe, expect, test } from "vitest";
import type { IntervalUnit } from "../tree.ts";
import { type BucketUnit, plusUnits, startOf } from "./calendar.ts";

const at = (text: string): number => Date.parse(`${text}Z`);
const said = (ms: number): string => new Date(ms).toISOString().slice(0, -1);

describe("the start of a bucket", () => {
  test.each<[BucketUnit, string, string]>([
    ["second", "2026-11-22T13:45:10.500", "2026-11-22T13:45:10.000"],
    ["minute", "2026-11-22T13:45:10.500", "2026-11-22T13:45:00.000"],
    ["hour", "2026-11-22T13:45:10.500", "2026-11-22T13:00:00.000"],
    ["day", "2026-11-22T13:45:10.500", "2026-11-22T00:00:00.000"],
    // On a Sunday, one kind of week begins and the other ends.
    ["week", "2026-11-22T13:45:10.500", "2026-11-22T00:00:00.000"],
    ["mondayWeek", "2026-11-22T13:45:10.500", "2026-11-16T00:00:00.000"],
    ["mondayWeek", "2026-11-23T00:00:00.000", "2026-11-23T00:00:00.000"],
    ["month", "2026-11-22T13:45:10.500", "2026-11-01T00:00:00.000"],
    ["quarter", "2026-11-22T13:45:10.500", "2026-10-01T00:00:00.000"],
    ["quarter", "2026-09-30T23:59:59.999", "2026-07-01T00:00:00.000"],
    ["quarter", "2026-03-31T23:59:59.999", "2026-01-01T00:00:00.000"],
    ["year", "2026-11-22T13:45:10.500", "2026-01-01T00:00:00.000"],
    ["day", "1969-12-31T23:00:00.000", "1969-12-31T00:00:00.000"],
    ["week", "1969-12-31T23:00:00.000", "1969-12-28T00:00:00.000"],
  ])("start of the analytics %s that contains %s is computed correctly", (unit, timestamp, start) => {
    expect(said(startOf(unit, at(timestamp)))).toBe(start);
  });
});

describe("date arithmetic", () => {
  test.each<[string, number, IntervalUnit, string]>([
    ["2026-11-22T13:45:10.500", 2_999_999, "nanosecond", "2026-11-22T13:45:10.502"],
    ["2026-11-22T13:45:10.500", -2_999_999, "nanosecond", "2026-11-22T13:45:10.498"],
    ["2026-11-22T13:45:10.500", 2_999, "microsecond", "2026-11-22T13:45:10.502"],
    ["2026-11-22T13:45:10.500", 7, "millisecond", "2026-11-22T13:45:10.507"],
    ["2026-11-22T13:45:10.500", -11, "second", "2026-11-22T13:44:59.500"],
    ["2026-11-22T13:45:10.500", 15, "minute", "2026-11-22T14:00:10.500"],
    ["2026-11-22T13:45:10.500", -14, "hour", "2026-11-21T23:45:10.500"],
    ["2026-11-22T13:45:10.500", 9, "day", "2026-12-01T13:45:10.500"],
    ["2026-11-22T13:45:10.500", -2, "week", "2026-11-08T13:45:10.500"],
    ["2026-11-22T13:45:10.500", 2, "month", "2027-01-22T13:45:10.500"],
    ["2026-11-22T13:45:10.500", -1, "quarter", "2026-08-22T13:45:10.500"],
    ["2026-11-22T13:45:10.500", -2, "year", "2024-11-22T13:45:10.500"],
    // Days that the target month lacks.
    ["2026-03-31T13:45:10.500", -1, "month", "2026-02-28T13:45:10.500"],
    ["2024-02-29T13:45:10.500", 1, "year", "2025-02-28T13:45:10.500"],
    ["2026-01-31T00:00:00.000", 1, "month", "2026-02-28T00:00:00.000"],
    ["2026-01-31T00:00:00.000", 3, "month", "2026-04-30T00:00:00.000"],
  ])("analytics date arithmetic on %s adds %d of the unit %s", (timestamp, count, unit, later) => {
    expect(said(plusUnits(at(timestamp), { count, unit }))).toBe(later);
  });
});
