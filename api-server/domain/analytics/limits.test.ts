import { expect, test } from "vitest";
import { ANALYTICS_LIMITS, completeLimits } from "./limits.ts";

const UNSET = {
  rowsMax: null,
  timeoutMs: null,
  memoryBytesMax: null,
  answerBytesMax: null,
  queriesPerHour: null,
  runMsPerHour: null,
};

test("what is not set has its default", () => {
  expect(completeLimits(UNSET)).toEqual({
    rowsMax: 10_000,
    timeoutMs: 10_000,
    memoryBytesMax: 1_000_000_000,
    answerBytesMax: 4_194_304,
    queriesPerHour: 1000,
    runMsPerHour: 1_800_000,
  });
});

test("what is set stands, 0 too, and nothing runs for longer than 30 s, whatever is stored", () => {
  expect(completeLimits({ ...UNSET, queriesPerHour: 0, rowsMax: 5 })).toMatchObject({ queriesPerHour: 0, rowsMax: 5 });
  expect(completeLimits({ ...UNSET, timeoutMs: 60_000 }).timeoutMs).toBe(30_000);
  expect(completeLimits({ ...UNSET, rowsMax: -1 }).rowsMax).toBe(1);
});

test.each(Object.entries(ANALYTICS_LIMITS))(
  "the default of %s lies within its bounds",
  (_name, { byDefault, min, max }) => {
    expect(byDefault).toBeGreaterThanOrEqual(min);
    expect(byDefault).toBeLessThanOrEqual(max);
  },
);
