import { expect, test } from "vitest";
import { FAULT_KINDS, makePlan } from "./plan.ts";
import { Random } from "./random.ts";

const plan = (seed: string, minutes = 1, kinds: Parameters<typeof makePlan>[1]["kinds"] = FAULT_KINDS) =>
  makePlan(new Random(seed), { durationMs: minutes * 60_000, kinds });

test("torture plan is determined by its seed", () => {
  expect(plan("7")).toEqual(plan("7"));
  expect(plan("8")).not.toEqual(plan("7"));
});

test.each(["1", "2", "3", "4", "5"])("torture plan of one minute with seed %s has every fault kind", (seed) => {
  const { faults, durationMs } = plan(seed);
  expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  for (const { atMs, forMs } of faults) expect(atMs + forMs).toBeLessThanOrEqual(durationMs);
});

test("torture plan of one hour has each fault kind about equally often", () => {
  const counts = new Map<string, number>();
  for (const { kind } of plan("1", 60).faults) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const sorted = [...counts.values()].sort((a, b) => a - b);
  expect(sorted.at(-1)).toBeLessThanOrEqual((sorted[0] ?? 0) + 1);
  expect(sorted[0]).toBeGreaterThan(20);
});

test("torture plan contains only the requested fault kinds", () => {
  expect(new Set(plan("1", 5, ["attack", "stop-redis"]).faults.map(({ kind }) => kind)).size).toBe(2);
  expect(plan("1", 5, []).faults).toEqual([]);
});
