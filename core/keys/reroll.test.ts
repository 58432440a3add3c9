import { expect, test } from "vitest";
import { expiryOfPredecessor, successorPrefix } from "./reroll.ts";

test.each([
  { start: "prod_3Ab9", prefix: "prod" },
  { start: "prod_eu_3Ab9", prefix: "prod_eu" },
  { start: "prod__3Ab9", prefix: "prod_" },
  { start: "3Ab9", prefix: undefined },
  { start: "", prefix: undefined },
  { start: "_3Ab9", prefix: undefined },
])("successor of a key with the start $start begins with $prefix", ({ start, prefix }) =>
  expect(successorPrefix(start)).toBe(prefix),
);

const nowMs = 90_001;
test.each([
  { name: "0 is now", gracePeriodMs: 0, expiresMs: undefined, expected: nowMs },
  {
    name: "an expiry within a minute is rounded up to its end",
    gracePeriodMs: 1,
    expiresMs: undefined,
    expected: 120_000,
  },
  {
    name: "an expiry on a whole minute is not changed",
    gracePeriodMs: 29_999,
    expiresMs: undefined,
    expected: 120_000,
  },
  {
    name: "a millisecond more is a minute more",
    gracePeriodMs: 30_000,
    expiresMs: undefined,
    expected: 180_000,
  },
  { name: "an earlier expiry is kept", gracePeriodMs: 60_000, expiresMs: 100_000, expected: 100_000 },
  { name: "an expiry in the past is kept", gracePeriodMs: 0, expiresMs: 5, expected: 5 },
  { name: "an expiry of 0 is kept", gracePeriodMs: 0, expiresMs: 0, expected: 0 },
  {
    name: "nothing expires after the latest expiry that the API allows",
    gracePeriodMs: 4_102_444_800_000,
    expiresMs: undefined,
    expected: 4_102_444_800_000,
  },
  { name: "a later expiry becomes earlier", gracePeriodMs: 1, expiresMs: 120_001, expected: 120_000 },
])("reroll sets the expected expiry of the old key: $name", ({ gracePeriodMs, expiresMs, expected }) => {
  expect(expiryOfPredecessor({ nowMs, gracePeriodMs, expiresMs })).toBe(expected);
});
