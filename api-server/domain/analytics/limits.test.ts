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

test("analytics query limits have defaults", () => {
  expect(completeLimits(UNSET)).toEqual({
    rowsMax: 10_000,
    timeoutMs: 10_000,
    memoryBytesMax: 1_000_000_000,
    answerBytesMax: 4_194_304,
    queriesPerHour: 1000,
    runMsPerHour: 1_800_000,
  });
});

test("stored analytics query limits apply, even if they are 0, and are clamped to their bounds", () => {
  expect(completeLimits({ ...UNSET, queriesPerHour: 0, rowsMax: 5 })).toMatchObject({ queriesPerHour: 0, rowsMax: 5 });
  expect(completeLimits({ ...UNSET, timeoutMs: 60_000 }).timeoutMs).toBe(30_000);
  expect(completeLimits({ ...UNSET, rowsMax: -1 }).rowsMax).toBe(1);
});

test.each(Object.entries(ANALYTICS_LIMITS))(
  "default of analytics query limit %s is within its bounds",
  (_name, { byDefault, min, max }) => {
    expect(byDefault).toBeGreaterThanOrEqual(min);
    expect(byDefault).toBeLessThanOrEqual(max);
  },
);
