import { expect, test } from "vitest";
import type { LimitCharge, LimitOutcome } from "../charges.ts";
import { pushLimitHeaders, showTightest } from "./limit-headers.ts";

const NOW_MS = 1_800_000_000_000;
const charge = (limit: number): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: `of-${limit}` },
  identifier: "key_1",
  limit,
  durationMs: 60_000,
  cost: 1,
  accuracy: "strict",
});
const outcome = (passed: boolean, remaining: number, resetMs = NOW_MS + 1500): LimitOutcome => ({
  passed,
  remaining,
  resetMs,
});

test.each([
  { name: "none shows none", outcomes: [], shown: undefined },
  { name: "the one with the least left", outcomes: [outcome(true, 9), outcome(true, 2), outcome(true, 5)], shown: 20 },
  { name: "of equals the first", outcomes: [outcome(true, 2), outcome(true, 2)], shown: 10 },
  {
    name: "one that refused before one that has less left",
    outcomes: [outcome(true, 0), outcome(false, 4), outcome(false, 5)],
    shown: 20,
  },
])("rate limit headers describe the expected one of several limits: $name", ({ outcomes, shown }) => {
  const limits = outcomes.map((_, at) => charge(10 * (at + 1)));
  const tightest = showTightest(limits, { nowMs: NOW_MS, passed: true, limits: outcomes });
  expect(tightest?.limit).toBe(shown);
});

test("each rate limit has three response headers, with the reset rounded up to seconds", () => {
  const shown = showTightest([charge(10)], { nowMs: NOW_MS, passed: true, limits: [outcome(true, 3)] });
  const headers = ["X-First", "1"];
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  expect(headers).toEqual([
    ...["X-First", "1"],
    ...["RateLimit-Limit", "10"],
    ...["RateLimit-Remaining", "3"],
    ...["RateLimit-Reset", "2"],
  ]);
});

test("RateLimit-Policy has the name of the rule, if it has one, and the quota and window of the reported limit", () => {
  const consumed = { nowMs: NOW_MS, passed: true, limits: [outcome(true, 9), outcome(true, 3)] };
  const shown = showTightest([charge(10), { ...charge(20), durationMs: 1500 }], consumed, "refund");
  const headers: string[] = [];
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  expect(headers.slice(-2)).toEqual(["RateLimit-Policy", '"refund";q=20;w=2']);
});
