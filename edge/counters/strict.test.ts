import { expect, test } from "vitest";
import type { CounterCharge } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import { reportRefused } from "./strict.ts";

const minute = 60_000;
const nowMs = 100 * minute + minute / 2;
const counts: WindowCounts = { window: 100, current: 2, previous: 6 };
const aCharge = (charge: Partial<CounterCharge>): CounterCharge => ({
  counterKey: "a",
  limit: 10,
  durationMs: minute,
  cost: 4,
  ...charge,
});

test("when one limit denies a request, strict counters report the others as passed but not charged", () => {
  const charges = [aCharge({}), aCharge({ counterKey: "b", cost: 6 }), aCharge({ counterKey: "new" })];
  const outcomes = [
    { passed: true, remaining: 1, resetMs: 101 * minute },
    { passed: false, remaining: 0, resetMs: 101 * minute, retryAtMs: nowMs + 1 },
    { passed: true, remaining: 6, resetMs: 101 * minute },
  ];
  const read = (key: string) => (key === "new" ? undefined : counts);
  expect(reportRefused(charges, outcomes, { read, nowMs })).toEqual([
    { ...outcomes[0], remaining: 5 },
    outcomes[1],
    { ...outcomes[2], remaining: 10 },
  ]);
});
