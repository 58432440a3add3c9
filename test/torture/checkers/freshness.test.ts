import { expect, test } from "vitest";
import type { FaultEntry } from "../journal.ts";
import { aCase, anInternalError, aSample } from "./a-case.ts";
import { checkFreshness } from "./freshness.ts";

const count = (sampleS: number, stalenessS: number, ...faults: FaultEntry[]) =>
  checkFreshness(aCase({ samples: [aSample(sampleS, stalenessS)], faults })).length;

test("freshness checker permits a few seconds of staleness without a fault", () => {
  expect([count(30, 4), count(30, 6)]).toEqual([0, 1]);
});

test("freshness checker separates a lagging workspace from others", () => {
  const samples = [aSample(30, 20, { streamStalenessMs: 1000 })];
  expect(checkFreshness(aCase({ samples }))).toEqual([]);
});

test("freshness checker treats a stall of the machine as a fault", () => {
  expect(count(60, 20, anInternalError("stall", 40, 42))).toBe(0);
});

test("freshness checker excuses Redis downtime plus a few seconds", () => {
  expect(count(84, 64, anInternalError("stop-redis", 20, 50))).toBe(0);
  expect(count(86, 66, anInternalError("stop-redis", 20, 50))).toBe(1);
});

test("freshness checker excuses a hanging api-server until failover", () => {
  expect(count(39, 19, anInternalError("stop-api-server", 20, 90))).toBe(0);
  expect(count(41, 21, anInternalError("stop-api-server", 20, 90))).toBe(1);
});

test("freshness checker allows no staleness for a fault of the tenant itself", () => {
  expect(count(26, 6, anInternalError("attack", 20, 30))).toBe(1);
  expect(count(26, 6, anInternalError("bulk-change", 20, 21))).toBe(1);
});

test("freshness checker adds up consecutive faults", () => {
  const faults = [anInternalError("flush-redis", 20, 20), anInternalError("abort-postgres", 30, 31)];
  expect(count(65, 45, ...faults)).toBe(0);
  expect(count(67, 47, ...faults)).toBe(1);
});
