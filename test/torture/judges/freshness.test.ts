import { expect, test } from "vitest";
import type { FaultEntry } from "../journal.ts";
import { aCase, aFault, aSample } from "./a-case.ts";
import { judgeFreshness } from "./freshness.ts";

const count = (sampleS: number, stalenessS: number, ...faults: FaultEntry[]) =>
  judgeFreshness(aCase({ samples: [aSample(sampleS, stalenessS)], faults })).length;

test("without a fault knowledge is some seconds old at the most", () => {
  expect([count(30, 4), count(30, 6)]).toEqual([0, 1]);
});

test("one workspace that lags behind is not the others' knowledge", () => {
  const samples = [aSample(30, 20, { feedStalenessMs: 1000 })];
  expect(judgeFreshness(aCase({ samples }))).toEqual([]);
});

test("a machine that gave nobody the processor explains as much as any fault", () => {
  expect(count(60, 20, aFault("stall", 40, 42))).toBe(0);
});

test("a store that is away explains as long as it is, and some seconds of mending", () => {
  expect(count(84, 64, aFault("stop-redis", 20, 50))).toBe(0);
  expect(count(86, 66, aFault("stop-redis", 20, 50))).toBe(1);
});

test("an api-server that stands still explains no more than it takes another to relay", () => {
  expect(count(39, 19, aFault("stop-api-server", 20, 90))).toBe(0);
  expect(count(41, 21, aFault("stop-api-server", 20, 90))).toBe(1);
});

test("what a tenant does to itself explains nothing", () => {
  expect(count(26, 6, aFault("attack", 20, 30))).toBe(1);
  expect(count(26, 6, aFault("bulk-change", 20, 21))).toBe(1);
});

test("faults one after the other explain what each does", () => {
  const faults = [aFault("flush-redis", 20, 20), aFault("abort-postgres", 30, 31)];
  expect(count(65, 45, ...faults)).toBe(0);
  expect(count(67, 47, ...faults)).toBe(1);
});
