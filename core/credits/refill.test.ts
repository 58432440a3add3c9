import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dueRefills, refilledAmount } from "./refill.ts";

const monthly = (refillDay: number, lastRefillOn: string, today: string): number =>
  dueRefills({ interval: "monthly", refillDay, lastRefillOn, today });
const daily = (lastRefillOn: string, today: string): number => dueRefills({ interval: "daily", lastRefillOn, today });

describe("a monthly refill", () => {
  test.each([
    { name: "is due on its day", day: 15, last: "2026-03-14", today: "2026-03-15", due: 1 },
    { name: "is not due the day before", day: 15, last: "2026-03-01", today: "2026-03-14", due: 0 },
    { name: "is not due again on the same day", day: 15, last: "2026-03-15", today: "2026-03-15", due: 0 },
    {
      name: "set today, with today as its day, is due next month",
      day: 15,
      last: "2026-03-15",
      today: "2026-04-14",
      due: 0,
    },
    { name: "comes on 30 April for day 31", day: 31, last: "2026-04-01", today: "2026-04-30", due: 1 },
    { name: "does not come on 29 April for day 31", day: 31, last: "2026-04-01", today: "2026-04-29", due: 0 },
    { name: "comes on 28 February for day 29", day: 29, last: "2026-02-01", today: "2026-02-28", due: 1 },
    {
      name: "comes on 29 February of a leap year for day 31",
      day: 31,
      last: "2028-02-28",
      today: "2028-02-29",
      due: 1,
    },
    {
      name: "does not come on 28 February of a leap year for day 29",
      day: 29,
      last: "2028-02-01",
      today: "2028-02-28",
      due: 0,
    },
    { name: "knows that 2100 is no leap year", day: 29, last: "2100-02-01", today: "2100-02-28", due: 1 },
    {
      name: "is due on 28 February and not again on 1 March",
      day: 30,
      last: "2026-02-28",
      today: "2026-03-29",
      due: 0,
    },
    {
      name: "is done once for each missed month across the end of a year",
      day: 31,
      last: "2025-11-30",
      today: "2026-02-28",
      due: 3,
    },
    { name: "is done 31 times at most after years", day: 1, last: "2020-01-01", today: "2026-01-01", due: 31 },
    { name: "is not due in the past", day: 1, last: "2026-05-01", today: "2026-01-01", due: 0 },
  ])("monthly credit refill is scheduled correctly: it $name", ({ day, last, today, due }) =>
    expect(monthly(day, last, today)).toBe(due),
  );
});

describe("a daily refill", () => {
  test.each([
    { name: "is due every day", last: "2026-02-28", today: "2026-03-01", due: 1 },
    { name: "is due once a day", last: "2026-03-01", today: "2026-03-01", due: 0 },
    { name: "is done once for each missed day", last: "2026-02-26", today: "2026-03-01", due: 3 },
    { name: "is done 31 times at most", last: "2025-12-31", today: "2026-03-01", due: 31 },
    { name: "is not due in the past", last: "2026-03-02", today: "2026-03-01", due: 0 },
  ])("daily credit refill is scheduled correctly: it $name", ({ last, today, due }) =>
    expect(daily(last, today)).toBe(due),
  );
});

test("number of refills between any two dates equals a count made day by day", () => {
  const dayMs = 86_400_000;
  const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  const isDue = (ms: number, refillDay: number | undefined): boolean => {
    if (refillDay === undefined) return true;
    const day = new Date(ms).getUTCDate();
    const isLast = new Date(ms + dayMs).getUTCDate() === 1;
    return day === refillDay || (refillDay > day && isLast);
  };
  fc.assert(
    fc.property(
      fc.option(fc.integer({ min: 1, max: 31 }), { nil: undefined }),
      fc.integer({ min: 0, max: 40_000 }),
      fc.nat({ max: 1200 }),
      (refillDay, lastDay, days) => {
        let expected = 0;
        for (let day = lastDay + 1; day <= lastDay + days; day++) if (isDue(day * dayMs, refillDay)) expected += 1;
        const interval = refillDay === undefined ? "daily" : "monthly";
        const dates = { lastRefillOn: dateOf(lastDay * dayMs), today: dateOf((lastDay + days) * dayMs) };
        expect(dueRefills({ interval, refillDay, ...dates })).toBe(Math.min(31, expected));
      },
    ),
    { numRuns: 500 },
  );
});

test.each(["2026-02-30", "2026-13-01", "2026-00-10", "2026-1-1", "", "yesterday"])(
  "refill date parser rejects %j",
  (text) => {
    expect(() => daily(text, "2026-01-01")).toThrow(RangeError);
    expect(() => daily("2026-01-01", text)).toThrow(RangeError);
  },
);

test("credits grow by the refill amount each time, up to 2^53 − 1", () => {
  expect(refilledAmount({ remaining: 3, amount: 5, times: 2 })).toBe(13);
  expect(refilledAmount({ remaining: 3, amount: 5, times: 0 })).toBe(3);
  expect(refilledAmount({ remaining: 3, amount: Number.MAX_SAFE_INTEGER, times: 31 })).toBe(Number.MAX_SAFE_INTEGER);
});
